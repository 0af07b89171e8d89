//! All that is known about Tekton: renders PipelineRuns and reads what Tekton reports.
