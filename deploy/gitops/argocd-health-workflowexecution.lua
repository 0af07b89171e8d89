-- The health of a WorkflowExecution for Argo CD: docs/gitops.md says where to put it.
-- Progressing until the end; then Healthy if it completed or was skipped, and Degraded if it failed.
local hs = {status = "Progressing", message = "no operator has decided on it"}
local status = obj.status
if status == nil or status.phase == nil then
  return hs
end
hs.message = status.phase
if status.summary ~= nil and status.summary ~= "" then
  hs.message = status.phase .. ": " .. status.summary
end
if status.phase == "Completed" or status.phase == "Skipped" then
  hs.status = "Healthy"
elseif status.phase == "Failed" then
  hs.status = "Degraded"
  if status.failureDetails ~= nil and status.failureDetails.naturalLanguageSummary ~= nil then
    hs.message = status.failureDetails.naturalLanguageSummary
  end
end
return hs
