@_exported public import WeftContext
@_exported public import WeftRuntime
@_exported public import WeftSync
