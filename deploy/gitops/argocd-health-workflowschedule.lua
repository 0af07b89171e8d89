-- The health of a WorkflowSchedule for Argo CD: docs/gitops.md says where to put it.
-- Degraded if a person must act, Suspended if a person has suspended it, and Healthy if it will run, also if something that
-- ends by itself holds it now.
local hs = {status = "Progressing", message = "the operator has not read this version of it"}
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation or status.conditions == nil then
  return hs
end
local needs_a_person = {TriagePaused = true, PreviousExecutionFailed = true, ExhaustedRetries = true}
local held = nil
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" and condition.status == "False" then
    hs.status = "Degraded"
    hs.message = condition.message
    return hs
  elseif condition.type == "Ready" and condition.status == "True" then
    hs.status = "Healthy"
    hs.message = "runs next at " .. (status.nextRunTime or "the end of the current run")
  elseif condition.type == "Held" and condition.status == "True" then
    held = condition
  end
end
if held ~= nil and hs.status == "Healthy" then
  hs.message = held.reason .. ": " .. held.message
  if held.reason == "Suspended" then
    hs.status = "Suspended"
  elseif needs_a_person[held.reason] then
    hs.status = "Degraded"
  end
end
return hs
