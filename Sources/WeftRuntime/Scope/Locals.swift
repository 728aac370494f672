import CWeft

// How locals are bound: an immutable chain of links, innermost first, that fibers share.
//
//     withValue("r-17")            scope ──▶ (id: "r-17") ──▶ (user: "ann") ──▶ nil
//       Fiber { }                              ▲
//                                  child ──────┘    one reference, no copy
//
// INVARIANT: no key is in a chain twice. Binding one again copies the links before it, so that a
// fiber which starts the next one inside withValue, and that one another, does not grow a chain.
//
// INVARIANT: WEFT_FIBER_LOCALS is set exactly while `locals` in the fiber's scope is not null, or,
// before it runs, `FiberCell.extras.locals`.

/// A link of a chain. Its subclass has the value.
// SAFETY: constant once it is in a chain; key and value are Sendable.
@usableFromInline
@safe
class LocalBinding: @unchecked Sendable {
  /// The FiberLocal, kept alive: its address is its identity.
  @usableFromInline final let key: AnyObject
  @usableFromInline final fileprivate(set) var outer: LocalBinding?

  init(key: AnyObject) { self.key = key }

  /// The same binding, not in a chain yet.
  func copy() -> LocalBinding { fatalError("weft: a binding without a value") }
}

/// The innermost binding of a local, if there is one.
@usableFromInline
func findLocal(_ key: AnyObject) -> LocalBinding? {
  // SAFETY: the scope of the code that calls, which keeps the chain.
  guard let locals = unsafe weft_current_scope().pointee.locals else { return nil }
  return find(key, in: unsafe Unmanaged<LocalBinding>.fromOpaque(locals).takeUnretainedValue())
}

private func find(_ key: AnyObject, in chain: LocalBinding?) -> LocalBinding? {
  var link = chain
  while let found = link, found.key !== key { link = found.outer }
  return link
}

/// The chain without a local.
private func chain(_ chain: LocalBinding?, without key: AnyObject) -> LocalBinding? {
  guard let found = find(key, in: chain) else { return chain }
  var inner: [LocalBinding] = []
  var link = chain
  while let other = link, other !== found {
    inner.append(other)
    link = other.outer
  }
  return inner.reversed().reduce(found.outer) { rest, link in
    let copy = link.copy()
    copy.outer = rest
    return copy
  }
}

/// What to put back when a `withValue` is left.
@usableFromInline
@safe
struct LocalScope {
  private let place = ScopePlace()
  /// With a reference that `leave` gives back to the scope, or drops.
  private let outer: UnsafeMutableRawPointer?

  @usableFromInline
  init(_ binding: LocalBinding) {
    // SAFETY: the scope of the code that calls, whose reference to the chain moves to here.
    let scope = unsafe weft_current_scope()
    unsafe outer = scope.pointee.locals
    let locals = unsafe outer.map {
      unsafe Unmanaged<LocalBinding>.fromOpaque($0).takeUnretainedValue()
    }
    binding.outer = chain(locals, without: binding.key)
    unsafe scope.pointee.locals = Unmanaged.passRetained(binding).toOpaque()
    Self.noteLocals(true)
  }

  @usableFromInline
  func leave() {
    // SAFETY: the scope of the code that calls has a reference, and so has this one; each is
    // either put into the scope or dropped. Last, since a value's `deinit` may do anything.
    var dropped = unsafe outer
    if let scope = unsafe place.current {
      unsafe dropped = scope.pointee.locals
      unsafe scope.pointee.locals = outer
      unsafe Self.noteLocals(outer != nil)
    }
    if let dropped = unsafe dropped { unsafe Unmanaged<LocalBinding>.fromOpaque(dropped).release() }
  }

  /// Whether fibers that are made here have something to inherit.
  private static func noteLocals(_ has: Bool) {
    // SAFETY: the running fiber's own flags.
    guard let worker = unsafe weft_worker_current() else { return }
    let current = unsafe worker.pointee.current
    unsafe current.pointee.flags =
      has ? current.pointee.flags | .locals : current.pointee.flags & ~.locals
  }
}

extension FiberCell {
  /// Gives a new fiber what is bound around the code that makes it.
  @inline(never)
  final func inheritLocals(of scope: Scope) {
    // SAFETY: the new fiber is the caller's until it is queued; the scope is the caller's own.
    guard let locals = unsafe scope.pointee.locals else { return }
    let binding = unsafe Unmanaged<LocalBinding>.fromOpaque(locals).takeUnretainedValue()
    if let extras = unsafe self.extras {
      extras.locals = binding
    } else {
      unsafe self.extras = FiberExtras(name: nil, locals: binding)
    }
    unsafe pointer.pointee.flags |= .locals
  }
}

extension UnsafeMutablePointer where Pointee == weft_fiber {
  /// Before a fiber's body: what it inherited is its own from here on, and no longer its object's,
  /// which handles keep.
  @inline(never)
  func adoptLocals() {
    // SAFETY: the fiber that runs; its object lives as long as it does.
    guard let extras = unsafe cell.extras, let locals = extras.locals else { return }
    extras.locals = nil
    unsafe weft_fiber_scope(self).pointee.locals = Unmanaged.passRetained(locals).toOpaque()
  }

  /// After it.
  func releaseLocals() {
    // SAFETY: the fiber that runs, whose scope has a reference.
    let scope = unsafe weft_fiber_scope(self)
    unsafe pointee.flags &= ~.locals
    guard let locals = unsafe scope.pointee.locals else { return }
    unsafe scope.pointee.locals = nil
    unsafe Unmanaged<LocalBinding>.fromOpaque(locals).release()
  }
}
