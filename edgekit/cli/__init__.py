"""The command line: main and one module a command. A command parses, calls and prints; nothing else lives here."""
