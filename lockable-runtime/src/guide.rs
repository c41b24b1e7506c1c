#![doc = include_str!("../links.md")]
#![doc = include_str!("../guide/index.md")]

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/getting_started.md")]
pub mod getting_started {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/leases.md")]
pub mod leases {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/waiting.md")]
pub mod waiting {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/several_keys.md")]
pub mod several_keys {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/permits.md")]
pub mod permits {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/which_redis.md")]
pub mod which_redis {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/failover.md")]
pub mod failover {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/production.md")]
pub mod production {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/operating.md")]
pub mod operating {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/incident.md")]
pub mod incident {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/maintenance.md")]
pub mod maintenance {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/shell_script.md")]
pub mod shell_script {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/limits.md")]
pub mod limits {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/migrating.md")]
pub mod migrating {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/versions.md")]
pub mod versions {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/faq.md")]
pub mod faq {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../DESIGN.md")]
pub mod design {
    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/words.md")]
    pub mod words {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/safety.md")]
    pub mod safety {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/leases.md")]
    pub mod leases {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/acquiring.md")]
    pub mod acquiring {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/waiting.md")]
    pub mod waiting {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/fencing.md")]
    pub mod fencing {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/keys.md")]
    pub mod keys {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/operators.md")]
    pub mod operators {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/processes.md")]
    pub mod processes {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/connections.md")]
    pub mod connections {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/sentinel.md")]
    pub mod sentinel {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/cluster.md")]
    pub mod cluster {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/check.md")]
    pub mod check {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/functions.md")]
    pub mod functions {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/observability.md")]
    pub mod observability {}

    #[doc = include_str!("../links.md")]
    #[doc = include_str!("../design/development.md")]
    pub mod development {}
}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../CHANGELOG.md")]
pub mod changelog {}
