//! Which parts of a refusal are reported, besides its object (section 17).

use anyhow::Result;
use serde_json::json;
use wfe_testkit::World;

use crate::expect::text;
use crate::faults::short;
use crate::tries::refuse;

const SECRET: &str = "s3cr3t-and-long";

#[tokio::test]
async fn no_refusal_lets_the_value_of_a_parameter_out_of_its_object() -> Result<()> {
    for (operation, expression) in
        [("CREATE", "false"), ("UPDATE", "has(object.spec.status) || !has(oldObject.spec.status)")]
    {
        // The name is short, because the summary has room for only one sentence of the refusal.
        let world = World::new(&operation[..1].to_lowercase()).await?;
        let says = "'it says ' + object.spec.params.filter(param, param.name == 'TOKEN')[0].value + ' here'";
        let validation = json!({"expression": expression, "message": "no", "messageExpression": says});
        refuse(&world, operation, validation).await?;
        let operator = world.operator().arg("--start-deadline", "3s").start().await?;
        let bundle = short(&world).await?;
        world.wfe("quoted").image(&bundle).parameter("TOKEN", SECRET).create().await?;
        let wfe = world.await_phase("quoted", "Failed").await?;
        let details = &wfe["status"]["failureDetails"];
        let summary = text(&details["naturalLanguageSummary"]);
        assert!(summary.contains("it says <TOKEN> here") && !summary.contains(SECRET), "{operation}: {details:#}");
        let message = text(&details["message"]);
        let is_whole = operation == "CREATE";
        let quoted = format!("it says {} here", if is_whole { SECRET } else { "<TOKEN>" });
        assert!(message.contains(&quoted), "{operation}: {details:#}");
        let event = world.await_event("quoted", "WorkflowFailed").await?;
        assert!(text(&event["note"]).contains("it says <TOKEN> here"), "{operation}: {event:#}");
        let log = std::fs::read_to_string(operator.log_path())?;
        assert!(log.contains("it says <TOKEN> here"), "{operation}: the log tells of it");
        let events = json!(world.events().await?).to_string();
        for (place, told) in [("the log", &log), ("an event", &events)] {
            assert!(!told.contains(SECRET), "{operation}: {place} says the value");
        }
        world.close().await?;
    }
    Ok(())
}
