// main.swift - the process around the tool.
import WeftTool

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

exit(Tool.run(CommandLine.arguments))
