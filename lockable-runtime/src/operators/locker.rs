//! What a locker offers its operators.

#[cfg(feature = "admin")]
use super::admin::Admin;
use super::check::{Report, Role};
use crate::core::locker::Locker;
use crate::core::settings::url_settings::advice_on_ignored;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::findings::{Code, Finding, Severity};
use crate::operators::contract::operations;

impl Locker {
    /// Returns an [`Admin`], which lists the locks of this locker's prefix and can stop their holders.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let _guard = locker.lock("order:7").acquire().await?;
    /// let first = locker.admin().locks().next().await.transpose()?;
    /// assert_eq!(first.unwrap().name(), "order:7");
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn admin(&self) -> Admin {
        let context = std::sync::Arc::clone(self.context());
        Admin::new(context, self.prefix().to_owned(), self.namespace().clone())
    }

    /// Checks whether locks can work, and what endangers them.
    ///
    /// Run it at start-up, to log the report, and in a pipeline, to stop before a deployment. It takes about ten
    /// round trips.
    ///
    /// On Redis the check performs every operation of a lock once, on connections of its own, with a lock of its
    /// own whose key begins with the locker's prefix. The report names:
    ///
    /// - each right that the user lacks, as the ACL rule that grants it;
    /// - a version, a role or a setting of the server that is unsuitable for locks;
    /// - a proxy that seems to be between;
    /// - a subscription that slows waiting down;
    /// - a server that does not reply.
    ///
    /// A part that the user may not read, because locks do not need that right, is an info finding; the search for
    /// a proxy is skipped without one. On `memory://` the report states the limits of such locks.
    ///
    /// With Sentinels the check does all of this on the primary that they name. It also checks of each Sentinel
    /// whether it replies, which rights it refuses, and which primary it names. The report says where Sentinels
    /// disagree, where there are too few Sentinels or replicas for a failover, and where this machine cannot reach
    /// the address that they name. [`Finding::address`](crate::check::Finding::address) is the server that a
    /// finding is about. If some Sentinels do not reply, the primary is still checked completely.
    ///
    /// In a cluster the check does all of this on every primary, with a lock in one of its slots, and connects to
    /// every replica. The report names slots without a primary, primaries without a replica or with clocks that
    /// differ, nodes that are unreachable from here or refuse this user, and nodes of the URL that do not reply.
    ///
    /// # Guarantees
    /// The check touches no other lock, and leaves nothing behind.
    ///
    /// # What this does not guarantee
    /// - A proxy is found by the address at which the server accepted the connection (`CLIENT INFO`), or because
    ///   two connections are one connection at the server, or reach two servers (`INFO`). A proxy that is
    ///   transparent to both is not found.
    /// - The report is a snapshot.
    /// - If the user may use only some keys of the prefix, the report says that the right to all of them is
    ///   missing.
    /// - The check's refused commands appear in the server's `ACL LOG`.
    ///
    /// # The least rights
    /// These lines allow everything that a locker ever does. Replace the names and passwords by yours, `disLock:`
    /// by your prefix, and `lockable` by your [`namespace`](crate::LockerBuilder::namespace).
    ///
    #[doc = include_str!("../../acl.md")]
    ///
    /// Some of these rights are optional:
    ///
    /// - `+select` is for a URL that names another database than 0, and `+asking` for slots that are moved to
    ///   another node.
    /// - If no call waits for a lock, a server does not need `+publish`, `+subscribe`, `+pubsub|numsub`, `+ping`
    ///   and `&lockable:*`. The report then says that they are missing.
    /// - In a cluster, calls can wait without `+spublish`, `+ssubscribe`, `+sunsubscribe`, `+pubsub|shardnumsub`
    ///   and `&lockable:*`, but poll about once a second.
    /// - `+client|setname` lets listings show which process has a lock.
    /// - `+client|tracking` and `+client|caching`, in a cluster also `+exists`, let a deleted lock stop its body at
    ///   once.
    /// - In a cluster, `+publish` and `+subscribe` let operators ask holders to stop.
    /// - `+copy` lets the first locks of a connection cost a server less.
    /// - `+evalsha` lets a call send the name of a script in place of its text, and `+script|exists` a new connection too.
    ///
    /// With `+config|get` and `+info`, which no lock needs, the first connection of a process to a server logs what the
    /// check warns of in its settings. Without them its `ACL LOG` has both refusals.
    ///
    /// # Cancel safety
    /// When the future is dropped, the check continues in the background, and cleans up.
    ///
    /// # Examples
    /// A service that does not start if its locks cannot work:
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockable_runtime::Locker;
    ///
    /// let locker = Locker::builder().url("memory://").connect_lazy()?;
    /// let report = locker.check().await;
    /// println!("{report}");
    /// if !report.is_ok() {
    ///     return Err("locks cannot work".into());
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// A finding in a test or in a pipeline:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use lockable_runtime::check::Severity;
    ///
    /// for finding in locker.check().await.findings() {
    ///     if finding.severity() >= Severity::Warning {
    ///         eprintln!("{}: {}", finding.code(), finding.advice());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn check(&self) -> Report {
        self.check_as(Role::App).await
    }

    /// Checks as [`check`](Locker::check) does, with the rights that another role needs.
    ///
    /// As [`Role::Reader`](Role) it checks rights only, and does nothing with a lock. The least rights of operators
    /// and readers are those of [`admin`](crate::admin#rights).
    ///
    /// # Guarantees
    /// As [`check`](Locker::check).
    ///
    /// # Cancel safety
    /// As [`check`](Locker::check).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::Locker;
    /// use lockable_runtime::check::Role;
    ///
    /// let locker = Locker::builder().url("memory://").connect_lazy()?;
    /// println!("{}", locker.check_as(Role::Reader).await);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn check_as(&self, role: Role) -> Report {
        let operations = match operations(self.context()) {
            Ok(operations) => operations,
            Err(error) => {
                return unchecked(self.backend_name(), &error)
                    .of(self.prefix(), self.namespace().as_str());
            }
        };
        let report = operations.check(self.prefix(), role).await;
        let mut report = report.of(self.prefix(), self.namespace().as_str());
        report.add(self.ignored().iter().map(|name| ignored(name)));
        if let Err(error) = LockKey::prefixed(self.prefix(), "key") {
            let severity = Severity::Error;
            let code = Code::InvalidPrefix;
            report.add([Finding::new(severity, code, error.to_string())]);
        }
        report
    }
}

/// The report of a check that cannot be done.
fn unchecked(backend: &str, error: &LockError) -> Report {
    let mut report = Report::new(backend);
    let advice = "make another locker in this process";
    let severity = Severity::Error;
    let code = Code::Unreachable;
    report.add([Finding::new(severity, code, error.to_string()).advise(advice)]);
    report
}

fn ignored(name: &str) -> Finding {
    let message = format!("the setting `{name}` of the URL is not lockable's, and is ignored");
    let finding = Finding::new(Severity::Info, Code::SettingIgnored, message);
    finding.about(name.to_owned()).advise(advice_on_ignored())
}
