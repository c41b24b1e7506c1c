#![doc = include_str!("../links.md")]
#![doc = include_str!("../guide/index.md")]

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/getting_started.md")]
pub mod getting_started {}

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
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/which_redis.md")]
pub mod which_redis {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/failover.md")]
pub mod failover {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/operating.md")]
pub mod operating {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../guide/incident.md")]
pub mod incident {}

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
pub mod design {}

#[doc = include_str!("../links.md")]
#[doc = include_str!("../CHANGELOG.md")]
pub mod changelog {}
