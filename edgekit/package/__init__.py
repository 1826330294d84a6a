"""The .ekpkg file: manifest types, writer, reader, integrity, and the layout of the native program."""
