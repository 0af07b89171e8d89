//! The WorkflowExecution API: types, schema, labels, reasons. No client.
