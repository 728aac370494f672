import CWeft

/// A task-local that nobody reads: binding it makes the runtime write its hidden word.
private enum Probe {
  @TaskLocal static var binding = 0
}

/// Finds this thread's words of libswift_Concurrency, once. Only Swift can bind a task-local, so
/// the search in C calls back here for it. Returns true, for `assert`.
@discardableResult
func findConcurrencyWords() -> Bool {
  // SAFETY: `body` is called once, before the closure returns, with the context that C gave.
  unsafe weft_words_find_concurrency { body, context in
    Probe.$binding.withValue(1) { unsafe body(context) }
  }
  return true
}
