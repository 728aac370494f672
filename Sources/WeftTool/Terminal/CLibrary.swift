// CLibrary.swift - the platform's C library, under one import for the tool.

#if canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Darwin)
  @_exported import Darwin
#endif

/// The value of an environment variable, nil if it is unset or empty.
func environmentVariable(_ name: String) -> String? {
  // SAFETY: the tool sets no variable while it runs, so the string getenv() returns stays valid
  // until it is copied here.
  guard let value = unsafe getenv(name) else { return nil }
  // SAFETY: as above; getenv() gives a terminated string.
  let text = unsafe String(cString: value)
  return text.isEmpty ? nil : text
}

/// The text of an `errno` value.
func errorText(_ number: Int32) -> String {
  // SAFETY: strerror() gives a terminated string that lives until the next call on this thread.
  unsafe String(cString: strerror(number))
}
