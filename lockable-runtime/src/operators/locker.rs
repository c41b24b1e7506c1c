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
    /// See [`Admin::locks`].
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn admin(&self) -> Admin {
        let context = std::sync::Arc::clone(self.context());
        Admin::new(context, self.prefix().to_owned(), self.namespace().clone())
    }

    /// Checks whether locks can work, and what endangers them.
    ///
    /// Run it at start-up to log the report, and in a pipeline before a deployment. It takes about ten round trips.
    ///
    /// On Redis the check performs every operation once, on its own connections, with its own lock under the locker's
    /// prefix. The report names:
    ///
    /// - each right that the user lacks, as the ACL rule that grants it;
    /// - a version, a role or a setting of the server that is unsuitable for locks;
    /// - a proxy that seems to be between;
    /// - a subscription that slows waiting down;
    /// - a server that does not reply.
    ///
    /// What the user may not read, because locks do not need that right, is an info finding; the search for a proxy is
    /// skipped without one. On `memory://` the report states the limits of such locks.
    ///
    /// With Sentinels the check does this on the primary that they name, even if some do not reply. It also reports
    /// Sentinels that do not reply, refuse a right or disagree, too few replicas for a failover, and an address that
    /// this machine cannot reach. [`Finding::address`](crate::check::Finding::address) is the server that a finding is
    /// about.
    ///
    /// In a cluster the check does this on every primary, with a lock in one of its slots, and connects to every
    /// replica. It also reports slots without a primary, primaries without a replica, clocks that differ, and nodes
    /// that are unreachable, refuse this user or do not reply.
    ///
    /// # Guarantees
    /// The check touches no other lock, and leaves nothing behind.
    ///
    /// # What this does not guarantee
    /// - A proxy is found if the server accepted the connection at another address (`CLIENT INFO`), or if two
    ///   connections are one there, or reach two servers (`INFO`). Another proxy is not found.
    /// - The report is a snapshot.
    /// - A user with a right to only some keys of the prefix is reported to lack the right to all.
    /// - The check's refused commands appear in the server's `ACL LOG`.
    ///
    /// # The least rights
    /// These lines allow everything that a locker does.
    ///
    #[doc = include_str!("../../acl.md")]
    ///
    /// Some of these rights are optional:
    ///
    /// - `+select` is for a URL that names another database than 0, and `+asking` for slots that are moved to another
    ///   node.
    /// - If no call waits for a lock, a server does not need `+publish`, `+subscribe`, `+pubsub|numsub`, `+ping` and
    ///   `&lockable:*`, which the report names as missing.
    /// - In a cluster, calls can wait without `+spublish`, `+ssubscribe`, `+sunsubscribe`, `+pubsub|shardnumsub` and
    ///   `&lockable:*`, but poll about once a second.
    /// - `+client|setname` lets listings show which process has a lock.
    /// - `+client|tracking` and `+client|caching`, in a cluster also `+exists`, let a deleted lock stop its body at
    ///   once.
    /// - In a cluster, `+publish` and `+subscribe` let operators ask holders to stop.
    /// - `+copy` lets the first locks of a connection cost a server less.
    /// - `+evalsha` lets a call send the name of a script in place of its text, and `+script|exists` a new connection
    ///   too.
    ///
    /// With `+config|get` and `+info`, which no lock needs, the check warns of the server's
    /// [settings](crate::guide::operating#settings-of-redis).
    ///
    /// # Cancel safety
    /// When the future is dropped, the check continues in the background, and cleans up.
    ///
    /// # Examples
    /// At start-up, see [`check`](crate::check). In a test or a pipeline:
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
    /// For a [`Role::Reader`] it checks only rights, and uses no lock. The least rights of operators and readers are
    /// those of [`admin`](crate::admin#rights).
    ///
    /// # Guarantees
    /// As [`check`](Locker::check).
    ///
    /// # Cancel safety
    /// As [`check`](Locker::check).
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
