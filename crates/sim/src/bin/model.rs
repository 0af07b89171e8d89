//! scratch
use wfe_sim::fault::{Budget, Fault};
use wfe_sim::leave_out::LeftOut;
use wfe_sim::model::{Setting, Stranger};
use wfe_sim::search::search;
use wfe_sim::translate::Translation;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let executions = args[0].parse().unwrap();
    let operators = args[1].parse().unwrap();
    let faults: Vec<Fault> = args[2..].iter().filter_map(|a| Some(match a.as_str() {
        "crash" => Fault::Crash, "late" => Fault::Late, "twice" => Fault::Twice, "lost" => Fault::AnswerLost,
        "refused" => Fault::Refused, "touch" => Fault::Touch, "unmake" => Fault::Unmake, "remake" => Fault::Remake,
        "erase" => Fault::Erase, "cancel" => Fault::Cancel, "linger" => Fault::Linger, "relist" => Fault::Relist, _ => return None })).collect();
    let latest_first = args.iter().any(|a| a == "latest");
    let left_out = match args.iter().find(|a| a.starts_with('-')).map_or("", |a| a.as_str()) {
        "-pending" => LeftOut::Pending, "-look" => LeftOut::Look, "-order" => LeftOut::Order, "-list" => LeftOut::ListOrder,
        "-owner" => LeftOut::Owner, "-commit" => LeftOut::CommitPrecondition, "-end" => LeftOut::EndPrecondition, "-release" => LeftOut::ReleasePrecondition,
        "-delete" => LeftOut::DeletePrecondition, "-drain" => LeftOut::Drain, "-skip" => LeftOut::SkipRead, "-ownerread" => LeftOut::OwnerRead, "-lost" => LeftOut::LostRead,
        "-own" => LeftOut::OwnWrites, "" => LeftOut::Nothing, x => panic!("{x}") };
    let setting = Setting { executions, operators, budget: Budget::of(&faults), stranger: Stranger::None, counts_losses: args.iter().any(|a| a == "losses"), drains: args.iter().any(|a| a == "drains"), translation: Translation { latest_first, reads_residue: args.iter().any(|a| a == "fix"), left_out, retains_nothing: args.iter().any(|a| a == "gc"), ..Default::default() } };
    let found = search(setting, 2);
    println!("{} states, {:?}, depth {}", found.states, found.took, found.depth);
    for (claim, steps) in found.broken { println!("BROKEN {claim}"); for s in steps { println!("   {s}"); } }
}
