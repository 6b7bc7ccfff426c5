//! The threads of the pool, and how they share the roles.

use gauntlet_problems::Roles;

/// How the threads of the pool share the roles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Team {
    threads: usize,
    producers: usize,
}

/// The work of one thread, with its number among the threads of that role.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Everything { worker: usize },
    Producer { producer: usize },
    Consumer { worker: usize },
}

impl Team {
    /// With specialised roles, one thread in four, and at least one, produces: per step of depth, packing costs a few
    /// cycles, while multiplying costs cycles in proportion to the tile's rows. `None` if there is only one thread.
    pub fn new(roles: Roles, threads: usize) -> Option<Self> {
        match roles {
            Roles::Unified => Some(Self {
                threads,
                producers: 0,
            }),
            Roles::Specialised => (threads >= 2).then_some(Self {
                threads,
                producers: (threads / 4).max(1),
            }),
        }
    }

    /// All threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Threads that only prepare panels.
    pub fn producers(&self) -> usize {
        self.producers
    }

    /// Threads that multiply.
    pub fn workers(&self) -> usize {
        self.threads - self.producers
    }

    /// What a thread does.
    pub(super) fn role(&self, thread: usize) -> Role {
        if self.producers == 0 {
            Role::Everything { worker: thread }
        } else if thread < self.producers {
            Role::Producer { producer: thread }
        } else {
            Role::Consumer {
                worker: thread - self.producers,
            }
        }
    }
}
