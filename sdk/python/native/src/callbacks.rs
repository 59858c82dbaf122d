//! The one thread that calls into Python, so that threads of the runtime never wait for Python's lock.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use pyo3::prelude::*;

/// Callbacks made before Python's lock is offered to other threads.
const TURN: usize = 256;

type Callback = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

enum Post {
    Call(Callback),
    End,
}

/// Makes callbacks in the order in which they were posted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CallbackThread {
    posts: Sender<Post>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl CallbackThread {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (posts, posted) = channel();
        let thread = std::thread::Builder::new().name("lockgate-callbacks".to_owned()).spawn(move || work(&posted))?;
        Ok(Self { posts, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// An exception of the callback goes to `sys.unraisablehook`.
    pub(crate) fn post(&self, callback: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
        // After the end of the interpreter there is no one to call.
        let _ = self.posts.send(Post::Call(Box::new(callback)));
    }

    /// Makes the callbacks that were posted before, and ends. The caller must not hold Python's lock.
    pub(crate) fn end(&self) {
        let _ = self.posts.send(Post::End);
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

fn work(posted: &Receiver<Post>) {
    while let Ok(first) = posted.recv() {
        let turn = std::iter::once(first).chain(posted.try_iter().take(TURN));
        // None: the interpreter is ending, and takes no calls.
        let goes_on = Python::try_attach(|py| make(py, turn));
        if goes_on != Some(true) {
            return;
        }
    }
}

/// False when the end was posted.
fn make(py: Python<'_>, turn: impl Iterator<Item = Post>) -> bool {
    for post in turn {
        match post {
            Post::Call(callback) => {
                if let Err(error) = callback(py) {
                    error.write_unraisable(py, None);
                }
            }
            Post::End => return false,
        }
    }
    true
}
