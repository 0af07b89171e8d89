//! Every reason that Tekton defines, and its meaning for the operator (section 9).
//!
//! A reason is an enumerated value in a field, so decisions may depend on it; they never depend on a message.
//! `versions` lists the versions of Tekton whose sources contain the reason: 1.9 is the oldest supported version, and
//! the tests run 1.12. A test reads the reasons from the sources of 1.12. An upgrade with a new reason therefore fails
//! until the reason has a meaning here.
//!
//! Reasons show why something failed. They never show whether anything ran, because most of them can occur both before
//! and after a step has run.

use wfe_core::findings::Wait;
use wfe_core::reason::FailureReason;

/// Declares an enum of Tekton's words, each with the versions of Tekton that contain it.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $word:literal in $versions:literal;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // Tekton's words: `means` returns what each means.
        pub enum $name {
            $($variant,)+
        }

        impl $name {
            /// All words.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns Tekton's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the versions of Tekton in whose sources the word was found.
            #[must_use]
            pub const fn versions(self) -> &'static str {
                match self {
                    $(Self::$variant => $versions,)+
                }
            }

            /// Parses Tekton's word; `None` for a word of a later version or of another program.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// Reasons of the condition `Succeeded` of a `PipelineRun`.
    RunReason:
    Started = "Started" in "1.9, 1.12";
    Running = "Running" in "1.9, 1.12";
    Succeeded = "Succeeded" in "1.9, 1.12";
    Completed = "Completed" in "1.9, 1.12";
    Failed = "Failed" in "1.9, 1.12";
    Cancelled = "Cancelled" in "1.9, 1.12";
    Pending = "PipelineRunPending" in "1.9, 1.12";
    TimedOut = "PipelineRunTimeout" in "1.9, 1.12";
    TimeoutRunningFinally = "PipelineRunTimeoutRunningFinally" in "1.13";
    Stopping = "PipelineRunStopping" in "1.9, 1.12";
    CancelledRunningFinally = "CancelledRunningFinally" in "1.9, 1.12";
    StoppedRunningFinally = "StoppedRunningFinally" in "1.9, 1.12";
    CouldntGetPipeline = "CouldntGetPipeline" in "1.9, 1.12";
    InvalidBindings = "InvalidPipelineResourceBindings" in "1.9, 1.12";
    InvalidWorkspaceBinding = "InvalidWorkspaceBindings" in "1.9, 1.12";
    InvalidTaskRunSpec = "InvalidTaskRunSpecs" in "1.9, 1.12";
    ParameterTypeMismatch = "ParameterTypeMismatch" in "1.9, 1.12";
    ObjectParameterMissKeys = "ObjectParameterMissKeys" in "1.9, 1.12";
    ParamArrayIndexingInvalid = "ParamArrayIndexingInvalid" in "1.9, 1.12";
    CouldntGetTask = "CouldntGetTask" in "1.9, 1.12";
    ParameterMissing = "ParameterMissing" in "1.9, 1.12";
    FailedValidation = "PipelineValidationFailed" in "1.9, 1.12";
    CouldntGetPipelineResult = "CouldntGetPipelineResult" in "1.9, 1.12";
    InvalidGraph = "PipelineInvalidGraph" in "1.9, 1.12";
    CouldntCancel = "PipelineRunCouldntCancel" in "1.9, 1.12";
    CouldntTimeOut = "PipelineRunCouldntTimeOut" in "1.9, 1.12";
    InvalidMatrixParameterTypes = "InvalidMatrixParameterTypes" in "1.9, 1.12";
    InvalidTaskResultReference = "InvalidTaskResultReference" in "1.9, 1.12";
    InvalidPipelineResultReference = "InvalidPipelineResultReference" in "1.9, 1.12";
    RequiredWorkspaceMarkedOptional = "RequiredWorkspaceMarkedOptional" in "1.9, 1.12";
    ResolvingPipelineRef = "ResolvingPipelineRef" in "1.9, 1.12";
    ResolvingTaskRef = "ResolvingTaskRef" in "1.9, 1.12";
    ResourceVerificationFailed = "ResourceVerificationFailed" in "1.9, 1.12";
    CreateRunFailed = "CreateRunFailed" in "1.9, 1.12";
    CelEvaluationFailed = "CELEvaluationFailed" in "1.9, 1.12";
    InvalidParamValue = "InvalidParamValue" in "1.9, 1.12";
    CouldntCreateWorkspacePvc = "CouldntCreateWorkspacePVC" in "1.9, 1.12";
    CouldntCreateAffinityAssistant = "ReasonCouldntCreateOrUpdateAffinityAssistantStatefulSet" in "1.9, 1.12";
}

words! {
    /// Reasons of the condition `Succeeded` of a `TaskRun`.
    TaskReason:
    Started = "Started" in "1.9, 1.12";
    Running = "Running" in "1.9, 1.12";
    Succeeded = "Succeeded" in "1.9, 1.12";
    Failed = "Failed" in "1.9, 1.12";
    ToBeRetried = "ToBeRetried" in "1.9, 1.12";
    Cancelled = "TaskRunCancelled" in "1.9, 1.12";
    TimedOut = "TaskRunTimeout" in "1.9, 1.12";
    ResolvingTaskRef = "ResolvingTaskRef" in "1.9, 1.12";
    ResolvingStepActionRef = "ResolvingStepActionRef" in "1.9, 1.12";
    TaskRunPending = "TaskRunPending" in "1.12";
    ImagePullFailed = "TaskRunImagePullFailed" in "1.9, 1.12";
    CreateContainerConfigError = "CreateContainerConfigError" in "1.9, 1.12";
    PodCreationFailed = "PodCreationFailed" in "1.9, 1.12";
    PodAdmissionFailed = "PodAdmissionFailed" in "1.9, 1.12";
    ResultTooLarge = "TaskRunResultLargerThanAllowedLimit" in "1.9, 1.12";
    StopSidecarFailed = "TaskRunStopSidecarFailed" in "1.9, 1.12";
    InvalidParamValue = "InvalidParamValue" in "1.9, 1.12";
    FailedResolution = "TaskRunResolutionFailed" in "1.9, 1.12";
    FailedValidation = "TaskRunValidationFailed" in "1.9, 1.12";
    TaskFailedValidation = "TaskValidationFailed" in "1.9, 1.12";
    ResourceVerificationFailed = "ResourceVerificationFailed" in "1.9, 1.12";
    FailureIgnored = "FailureIgnored" in "1.9, 1.12";
    PodEvicted = "PodEvicted" in "1.12";
    StepOom = "StepOOM" in "1.12";
    StepFailed = "StepFailed" in "1.12";
    SidecarOom = "SidecarOOM" in "1.12";
    SidecarFailed = "SidecarFailed" in "1.12";
    InitContainerOom = "InitContainerOOM" in "1.12";
    InitContainerFailed = "InitContainerFailed" in "1.12";
    Pending = "Pending" in "1.9, 1.12";
    ExceededResourceQuota = "ExceededResourceQuota" in "1.9, 1.12";
    ExceededNodeResources = "ExceededNodeResources" in "1.9, 1.12";
    PullImageFailed = "PullImageFailed" in "1.9, 1.12";
    CouldntCreateWorkspacePvc = "CouldntCreateWorkspacePVC" in "1.9, 1.12";
}

words! {
    /// Reasons of the condition `Succeeded` of a `CustomRun`. Its controller may have other reasons.
    CustomReason:
    Started = "Started" in "1.9, 1.12";
    Running = "Running" in "1.9, 1.12";
    Succeeded = "Succeeded" in "1.9, 1.12";
    Failed = "Failed" in "1.9, 1.12";
    Cancelled = "CustomRunCancelled" in "1.9, 1.12";
    TimedOut = "CustomRunTimedOut" in "1.9, 1.12";
    WorkspaceNotSupported = "CustomRunWorkspaceNotSupported" in "1.9, 1.12";
}

words! {
    /// The `terminationReason` of a step, if Tekton sets it and not the container runtime.
    StepReason:
    TimeoutExceeded = "TimeoutExceeded" in "1.9, 1.12";
    Skipped = "Skipped" in "1.9, 1.12";
    Continued = "Continued" in "1.9, 1.12";
    Cancelled = "Cancelled" in "1.9, 1.12";
}

words! {
    /// Why a task of the pipeline was skipped.
    SkipReason:
    WhenExpressions = "When Expressions evaluated to false" in "1.9, 1.12";
    ParentTasks = "Parent Tasks were skipped" in "1.9, 1.12";
    Stopping = "PipelineRun was stopping" in "1.9, 1.12";
    GracefullyCancelled = "PipelineRun was gracefully cancelled" in "1.9, 1.12";
    GracefullyStopped = "PipelineRun was gracefully stopped" in "1.9, 1.12";
    MissingResults = "Results were missing" in "1.9, 1.12";
    PipelineTimedOut = "PipelineRun timeout has been reached" in "1.9, 1.12";
    TasksTimedOut = "PipelineRun Tasks timeout has been reached" in "1.9, 1.12";
    FinallyTimedOut = "PipelineRun Finally timeout has been reached" in "1.9, 1.12";
    EmptyArrayInMatrix = "Matrix Parameters have an empty array" in "1.9, 1.12";
    None = "None" in "1.9, 1.12";
}

/// The meaning of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The object is not done.
    Unfinished,
    /// The object is not done, because it waits for this.
    Waits(Wait),
    /// The object succeeded, or its failure was ignored.
    Succeeded,
    /// The object failed, and its parts show why.
    LookInside,
    /// The object was cancelled by a person, or by the object that owns it.
    Cancelled,
    /// The bundle is to blame. Tekton has no field with the details.
    Bundle,
    /// The object failed for this reason.
    Failed(FailureReason),
}

impl RunReason {
    /// Returns the meaning of the reason.
    #[must_use]
    pub fn means(self) -> Meaning {
        use FailureReason::{ConfigurationError, DeadlineExceeded, Unknown};
        match self {
            Self::Started
            | Self::Running
            | Self::Pending
            | Self::Stopping
            | Self::CancelledRunningFinally
            | Self::StoppedRunningFinally
            | Self::TimeoutRunningFinally
            | Self::CouldntCancel
            | Self::CouldntTimeOut => Meaning::Unfinished,
            Self::ResolvingPipelineRef => Meaning::Waits(Wait::Bundle),
            Self::ResolvingTaskRef => Meaning::Waits(Wait::Task),
            Self::Succeeded | Self::Completed => Meaning::Succeeded,
            Self::Failed => Meaning::LookInside,
            Self::Cancelled => Meaning::Cancelled,
            Self::TimedOut => Meaning::Failed(DeadlineExceeded),
            Self::CouldntGetPipeline => Meaning::Bundle,
            Self::InvalidBindings
            | Self::InvalidWorkspaceBinding
            | Self::InvalidTaskRunSpec
            | Self::ParameterTypeMismatch
            | Self::ObjectParameterMissKeys
            | Self::ParamArrayIndexingInvalid
            | Self::CouldntGetTask
            | Self::ParameterMissing
            | Self::FailedValidation
            | Self::InvalidGraph
            | Self::InvalidMatrixParameterTypes
            | Self::InvalidTaskResultReference
            | Self::InvalidPipelineResultReference
            | Self::RequiredWorkspaceMarkedOptional
            | Self::ResourceVerificationFailed
            // The API server refused a TaskRun as malformed.
            | Self::CreateRunFailed
            | Self::CelEvaluationFailed
            | Self::InvalidParamValue => Meaning::Failed(ConfigurationError),
            // A quota, a missing permission and a wrong spec all lead to this reason.
            Self::CouldntCreateWorkspacePvc
            | Self::CouldntCreateAffinityAssistant
            // All tasks have run. No field shows which of them did not write a result.
            | Self::CouldntGetPipelineResult => Meaning::Failed(Unknown),
        }
    }
}

impl RunReason {
    /// Returns whether Tekton has stopped the tasks of the run and is running its finally tasks.
    #[must_use]
    pub fn runs_finally(self) -> bool {
        matches!(self, Self::CancelledRunningFinally | Self::StoppedRunningFinally)
    }
}

impl TaskReason {
    /// Returns the meaning of the reason.
    #[must_use]
    pub fn means(self) -> Meaning {
        use FailureReason::{
            ConfigurationError, DeadlineExceeded, Forbidden, ImagePullBackOff, OomKilled, ResourceExhausted, Unknown,
        };
        match self {
            Self::Started | Self::Running | Self::ToBeRetried | Self::TaskRunPending => Meaning::Unfinished,
            Self::ResolvingTaskRef | Self::ResolvingStepActionRef => Meaning::Waits(Wait::Task),
            Self::Pending => Meaning::Waits(Wait::Pod),
            Self::ExceededResourceQuota => Meaning::Waits(Wait::Quota),
            Self::ExceededNodeResources => Meaning::Waits(Wait::Node),
            Self::PullImageFailed => Meaning::Waits(Wait::Image),
            Self::Succeeded | Self::FailureIgnored => Meaning::Succeeded,
            // Before 1.12 this was the reason for any failure of the pod.
            Self::Failed | Self::StepFailed | Self::SidecarFailed => Meaning::LookInside,
            Self::Cancelled => Meaning::Cancelled,
            Self::TimedOut => Meaning::Failed(DeadlineExceeded),
            Self::StepOom | Self::SidecarOom | Self::InitContainerOom => Meaning::Failed(OomKilled),
            Self::ImagePullFailed => Meaning::Failed(ImagePullBackOff),
            // The node ran out of resources after it had accepted the pod.
            Self::PodEvicted => Meaning::Failed(ResourceExhausted),
            // The API server refused the pod with 403, because of a pod security standard or a security context
            // constraint.
            Self::PodAdmissionFailed => Meaning::Failed(Forbidden),
            // An unknown service account, a missing ConfigMap or Secret, or a pod that cannot be created as written.
            Self::PodCreationFailed
            | Self::CreateContainerConfigError
            | Self::InvalidParamValue
            | Self::FailedResolution
            | Self::FailedValidation
            | Self::TaskFailedValidation
            | Self::ResourceVerificationFailed => Meaning::Failed(ConfigurationError),
            Self::CouldntCreateWorkspacePvc
            | Self::ResultTooLarge
            | Self::StopSidecarFailed
            | Self::InitContainerFailed => Meaning::Failed(Unknown),
        }
    }
}

impl CustomReason {
    /// Returns the meaning of the reason.
    #[must_use]
    pub fn means(self) -> Meaning {
        match self {
            Self::Started | Self::Running => Meaning::Unfinished,
            Self::Succeeded => Meaning::Succeeded,
            Self::Cancelled => Meaning::Cancelled,
            Self::TimedOut => Meaning::Failed(FailureReason::DeadlineExceeded),
            Self::WorkspaceNotSupported => Meaning::Failed(FailureReason::ConfigurationError),
            Self::Failed => Meaning::Failed(FailureReason::Unknown),
        }
    }
}

impl StepReason {
    /// Returns whether the step caused the failure of its task. A step that was skipped, ignored or stopped with the
    /// others did not.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::TimeoutExceeded => true,
            Self::Skipped | Self::Continued | Self::Cancelled => false,
        }
    }
}

impl SkipReason {
    /// Returns whether the task was skipped because of a time-out.
    #[must_use]
    pub fn is_timeout(self) -> bool {
        match self {
            Self::PipelineTimedOut | Self::TasksTimedOut | Self::FinallyTimedOut => true,
            Self::WhenExpressions
            | Self::ParentTasks
            | Self::Stopping
            | Self::GracefullyCancelled
            | Self::GracefullyStopped
            | Self::MissingResults
            | Self::EmptyArrayInMatrix
            | Self::None => false,
        }
    }
}

/// Returns Tekton's reason for a waiting run or task; empty if Tekton gives none.
#[must_use]
pub fn word_of(wait: Wait) -> &'static str {
    match wait {
        Wait::Controller => "",
        Wait::Bundle => RunReason::ResolvingPipelineRef.as_str(),
        Wait::Task => RunReason::ResolvingTaskRef.as_str(),
        Wait::Quota => TaskReason::ExceededResourceQuota.as_str(),
        Wait::Node => TaskReason::ExceededNodeResources.as_str(),
        Wait::Image => TaskReason::PullImageFailed.as_str(),
        Wait::Pod => TaskReason::Pending.as_str(),
    }
}

/// Returns whether the kubelet's reason for a waiting container concerns the container's image.
pub(crate) fn is_about_an_image(reason: &str) -> bool {
    const REASONS: [&str; 6] = [
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    ];
    REASONS.contains(&reason)
}
