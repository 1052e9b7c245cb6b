//! Post-start hooks: the parts of a server that start after its configuration, such as informers and controllers.
//!
//! A hook has a name, a start function, and the names of the hooks that have to start before it. Everything else follows
//! from the list: the health check `poststarthook/NAME` fails until the hook has started and after one of its tasks has
//! died, and [`PostStartHooks::stopped`] waits for the tasks of all hooks at shutdown. Checks are reported in the order
//! in which hooks were added; hooks start concurrently, each as soon as the hooks before it have started.

use crate::health::{Health, HookCheck};
use futures_util::{
    future::{BoxFuture, join_all},
    stream::{FuturesUnordered, TryStreamExt},
};
use parking_lot::Mutex;
use pintle_machinery::Status;
use pintle_supervisor::Supervisor;
use std::{future::Future, sync::Arc};
use tokio::{sync::watch, task::JoinHandle};

type Start = Box<dyn Fn(HookContext) -> BoxFuture<'static, Result<(), Status>> + Send + Sync>;

struct PostStartHook {
    name: &'static str,
    after: Vec<&'static str>,
    start: Start,
    check: HookCheck,
}

/// The hooks of a server.
pub struct PostStartHooks {
    hooks: Vec<PostStartHook>,
    health: Arc<Health>,
    supervisor: Supervisor,
    stopping: watch::Receiver<bool>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl PostStartHooks {
    /// Creates an empty list. The tasks of the hooks end when `stopping` becomes true.
    pub fn new(
        health: Arc<Health>,
        supervisor: Supervisor,
        stopping: watch::Receiver<bool>,
    ) -> PostStartHooks {
        PostStartHooks { hooks: Vec::new(), health, supervisor, stopping, tasks: Arc::default() }
    }

    /// Adds a hook and its health check. `start` returns when the part works, and leaves tasks behind by
    /// [`HookContext`]. It may be called again after a failure, so it spawns tasks after everything that can fail.
    pub fn add<Starting>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        start: impl Fn(HookContext) -> Starting + Send + Sync + 'static,
    ) where
        Starting: Future<Output = Result<(), Status>> + Send + 'static,
    {
        self.add_unfinished(name, after, start, || true);
    }

    /// As [`PostStartHooks::add`], for a part that may need more time than the start of the server: the hooks behind it
    /// start when `start` returns, and the check fails until `is_finished`.
    pub fn add_unfinished<Starting>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        start: impl Fn(HookContext) -> Starting + Send + Sync + 'static,
        is_finished: impl Fn() -> bool + Send + Sync + 'static,
    ) where
        Starting: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let check = self.health.hook(name, is_finished);
        self.push(name, after, start, check);
    }

    fn push<Starting>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        start: impl Fn(HookContext) -> Starting + Send + Sync + 'static,
        check: HookCheck,
    ) where
        Starting: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let start: Start = Box::new(move |context| Box::pin(start(context)));
        self.hooks.push(PostStartHook { name, after: after.to_vec(), start, check });
    }

    /// Adds a hook that has nothing to start in this server: its check passes once the hooks before it have started.
    pub fn add_check(&mut self, name: &'static str, after: &[&'static str]) {
        self.add(name, after, |_| async { Ok(()) });
    }

    /// As [`PostStartHooks::add`], for a hook that health reports do not list: its name is known to the hooks behind it
    /// alone.
    pub fn add_unreported<Starting>(
        &mut self,
        name: &'static str,
        after: &[&'static str],
        start: impl Fn(HookContext) -> Starting + Send + Sync + 'static,
    ) where
        Starting: Future<Output = Result<(), Status>> + Send + 'static,
    {
        self.push(name, after, start, HookCheck::default());
    }

    /// Starts the hooks that have not started yet. After a failure it can be called again.
    ///
    /// # Errors
    /// The first failure of a hook; the starts in progress are cancelled. Also when hooks wait for each other, or for one
    /// that does not exist, which is a defect.
    pub async fn start(&self) -> Result<(), Status> {
        self.check_order()?;
        let waiting = self.hooks.iter().filter(|hook| !hook.check.has_started());
        // Unordered: a hook that fails may be behind those that wait for it.
        let mut starting: FuturesUnordered<_> = waiting.map(|hook| self.start_hook(hook)).collect();
        while let Some(()) = starting.try_next().await? {}
        Ok(())
    }

    /// Waits until the tasks of all hooks have ended after the shutdown signal.
    pub async fn stopped(self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for ended in join_all(tasks).await {
            if let Err(error) = ended {
                tracing::error!(%error, "a background task ended unexpectedly");
            }
        }
    }

    async fn start_hook(&self, hook: &PostStartHook) -> Result<(), Status> {
        for before in self.hooks.iter().filter(|other| hook.after.contains(&other.name)) {
            before.check.started().await;
        }
        let context = HookContext {
            part: format!("poststarthook/{}", hook.name).into(),
            supervisor: self.supervisor.clone(),
            stopping: self.stopping.clone(),
            tasks: self.tasks.clone(),
        };
        (hook.start)(context).await?;
        hook.check.set_started();
        Ok(())
    }

    /// Checks that there is an order in which all hooks can start.
    fn check_order(&self) -> Result<(), Status> {
        let mut started: Vec<&str> = Vec::new();
        let mut waiting: Vec<&PostStartHook> = self.hooks.iter().collect();
        while !waiting.is_empty() {
            let (ready, others): (Vec<_>, Vec<_>) = waiting
                .into_iter()
                .partition(|hook| hook.after.iter().all(|before| started.contains(before)));
            if ready.is_empty() {
                let names: Vec<&str> = others.iter().map(|hook| hook.name).collect();
                return Err(Status::internal_error(format!("hooks cannot start: {}", names.join(", "))));
            }
            started.extend(ready.iter().map(|hook| hook.name));
            waiting = others;
        }
        Ok(())
    }
}

/// The context of a hook's start function: spawns the tasks of the hook. All tasks must end when
/// [`HookContext::stopping`] becomes true.
#[derive(Clone)]
pub struct HookContext {
    part: Arc<str>,
    supervisor: Supervisor,
    stopping: watch::Receiver<bool>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl HookContext {
    /// The supervisor of the server's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The shutdown signal.
    pub fn stopping(&self) -> &watch::Receiver<bool> {
        &self.stopping
    }

    /// Runs a task that cannot be restarted. If it panics, the hook's health check fails from then on.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.join([self.supervisor.spawn(self.part.clone(), task)]);
    }

    /// Runs a task that is restarted after a panic. Until the new task has proved itself, the hook's health check fails.
    pub fn spawn_restarting<F: Future<Output = ()> + Send + 'static>(
        &self,
        make: impl FnMut() -> F + Send + 'static,
    ) {
        self.join([self.supervisor.spawn_restarting(self.part.clone(), make)]);
    }

    /// Adds tasks that were spawned elsewhere, so that the shutdown waits for them.
    pub fn join(&self, tasks: impl IntoIterator<Item = JoinHandle<()>>) {
        self.tasks.lock().extend(tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{body::Body, query::Query, stop::stopped};

    struct Server {
        health: Arc<Health>,
        stop: watch::Sender<bool>,
        hooks: PostStartHooks,
        log: Arc<Mutex<Vec<String>>>,
    }

    impl Server {
        fn new() -> Server {
            let (supervisor, stop) = (Supervisor::current(), watch::Sender::new(false));
            let health = Arc::new(Health::new(supervisor.clone()));
            let hooks = PostStartHooks::new(health.clone(), supervisor, stop.subscribe());
            Server { health, stop, hooks, log: Arc::default() }
        }

        /// Adds a hook that logs its start, and the end of its task.
        fn add(&mut self, name: &'static str, after: &[&'static str]) {
            let log = self.log.clone();
            self.hooks.add(name, after, move |context| {
                let log = log.clone();
                async move {
                    log.lock().push(format!("start {name}"));
                    let mut stopping = context.stopping().clone();
                    context.spawn(async move {
                        stopped(&mut stopping).await;
                        log.lock().push(format!("end {name}"));
                    });
                    Ok(())
                }
            });
        }

        fn report(&self) -> String {
            let response = self.health.serve("/livez", &Query::parse("verbose")).expect("a health path");
            let Body::Full(Some(bytes)) = response.into_body() else { panic!("no text") };
            String::from_utf8(bytes.to_vec()).unwrap()
        }
    }

    #[tokio::test]
    async fn hooks_start_in_the_order_of_their_dependencies_and_are_reported_in_that_of_the_list() {
        let mut server = Server::new();
        server.add("first", &["last", "middle"]);
        server.add("middle", &["last"]);
        server.add("last", &[]);
        server.hooks.add_check("nothing", &[]);
        server.hooks.start().await.unwrap();
        assert_eq!(*server.log.lock(), ["start last", "start middle", "start first"]);
        let report = "[+]ping ok\n[+]log ok\n[+]poststarthook/first ok\n[+]poststarthook/middle ok\n\
                      [+]poststarthook/last ok\n[+]poststarthook/nothing ok\nlivez check passed\n";
        assert_eq!(server.report(), report);
        server.stop.send_replace(true);
        let Server { hooks, log, .. } = server;
        hooks.stopped().await;
        assert_eq!(log.lock().len(), 6, "the shutdown waits for every task");
    }

    #[tokio::test]
    async fn an_unreported_hook_starts_before_those_behind_it_and_has_no_check() {
        let mut server = Server::new();
        server.add("behind", &["unreported"]);
        let log = server.log.clone();
        server.hooks.add_unreported("unreported", &[], move |_| {
            log.lock().push("start unreported".to_owned());
            async { Ok(()) }
        });
        server.hooks.start().await.unwrap();
        assert_eq!(*server.log.lock(), ["start unreported", "start behind"]);
        assert!(!server.report().contains("unreported"), "{}", server.report());
    }

    #[tokio::test]
    async fn a_start_that_has_failed_is_repeated_without_the_hooks_that_have_started() {
        let mut server = Server::new();
        server.add("before", &[]);
        let is_first = Arc::new(Mutex::new(true));
        server.hooks.add("fails once", &["before"], move |_| {
            let is_first = std::mem::take(&mut *is_first.lock());
            async move { if is_first { Err(Status::internal_error("not yet")) } else { Ok(()) } }
        });
        server.add("after", &["fails once"]);
        assert_eq!(server.hooks.start().await, Err(Status::internal_error("not yet")));
        assert!(server.report().contains("[+]poststarthook/before ok\n[-]poststarthook/fails once failed"));
        server.hooks.start().await.unwrap();
        assert_eq!(*server.log.lock(), ["start before", "start after"]);
    }

    #[tokio::test]
    async fn a_failure_is_returned_while_many_hooks_wait_for_the_failed_one() {
        let mut server = Server::new();
        for _ in 0..100 {
            server.add("waits", &["fails"]);
        }
        server.hooks.add("fails", &[], |_| async {
            tokio::task::yield_now().await;
            Err(Status::internal_error("never"))
        });
        assert_eq!(server.hooks.start().await, Err(Status::internal_error("never")));
        assert!(server.log.lock().is_empty());
    }

    #[tokio::test]
    async fn hooks_that_wait_for_each_other_are_an_error() {
        for after in ["other", "missing"] {
            let mut server = Server::new();
            server.add("hook", &[after]);
            server.add("other", &["hook"]);
            assert!(server.hooks.start().await.is_err());
        }
    }

    #[tokio::test]
    async fn a_hook_whose_task_has_died_fails() {
        let mut server = Server::new();
        server.hooks.add("dies", &[], |context| async move {
            context.spawn(async { panic!("as asked") });
            Ok(())
        });
        server.hooks.start().await.unwrap();
        let (health, stop) = (server.health.clone(), server.stop.clone());
        stop.send_replace(true);
        server.hooks.stopped().await;
        assert_eq!(health.serve("/livez/poststarthook/dies", &Query::parse("")).unwrap().status(), 500);
    }
}
