//! Runs whose end follows from their containers.

use serde_json::json;
use wfe_testkit::{Outcome, Pipeline};

use super::play::{End, Play};
use super::script::{Act, When};

/// The API server's answer to a service account without the required permission.
const FORBIDDEN: &str = "deployments.apps \"payment-api\" is forbidden: \
     User \"system:serviceaccount:kubernaut-workflows:kubernaut-workflow-runner\" cannot patch resource \
     \"deployments\" in API group \"apps\" in the namespace \"payment\"";

pub(super) fn plays() -> Vec<Play> {
    let two = |check, apply| Pipeline::new().task("check", check).task("apply", apply);
    let as_result = json!([{"key": "error", "value": FORBIDDEN, "type": 1}]).to_string();
    vec![
        Play::of("success", "Both tasks succeed.", two(Outcome::Ok, Outcome::Ok)),
        Play::of("exit-first", "The first of two tasks exits with 1.", two(Outcome::Exit(1), Outcome::Ok)),
        Play::of("exit-second", "The second of two tasks exits with 42.", two(Outcome::Ok, Outcome::Exit(42))),
        Play::of("oom", "The second task is killed for its memory.", two(Outcome::Ok, Outcome::Oom)),
        Play::of(
            "image-pull-first",
            "The image of the first task cannot be pulled.",
            two(Outcome::ImagePull, Outcome::Ok),
        ),
        Play::of(
            "image-pull-second",
            "The image of the second task cannot be pulled.",
            two(Outcome::Ok, Outcome::ImagePull),
        ),
        Play::of(
            "image-name-invalid",
            "The image of the first task has a name that is none.",
            two(Outcome::Waiting("InvalidImageName"), Outcome::Ok),
        ),
        Play::of(
            "container-config-error",
            "The container of the first task refers to something that is not there, such as a Secret.",
            two(Outcome::Waiting("CreateContainerConfigError"), Outcome::Ok),
        )
        .ends(End::Leaves),
        Play::of("evicted", "The pod of the first task is evicted while it runs.", two(Outcome::Hold, Outcome::Ok))
            .then(When::Running("check"), Act::Evict("check")),
        Play::of(
            "forbidden",
            "The second task is refused by the API server, and has that as its termination message.",
            two(Outcome::Ok, Outcome::Exit(1)).saying(FORBIDDEN),
        ),
        Play::of(
            "forbidden-as-result",
            "The second task is refused by the API server, and writes that into a result.",
            two(Outcome::Ok, Outcome::Exit(1)).saying(&as_result),
        ),
        Play::of(
            "misleading-words",
            "The second task exits with 3, and its message is full of words that name other causes.",
            two(Outcome::Ok, Outcome::Exit(3)).saying(WORDS),
        ),
    ]
}

/// A message with words that could mislead a program which searches text. None of the words says why the step failed.
const WORDS: &str =
    "no room in bathroom-svc: quota-service says invalid-login, 403 forbidden, timeout, image not pulled";
