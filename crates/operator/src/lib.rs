//! Library of the operator.
