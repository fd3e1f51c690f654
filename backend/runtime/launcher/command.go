package main

import (
	"os"
)

// readAndRun has bash read the command from descriptor 3: every user of a node can read the arguments of a process,
// and the text of a command may hold secrets. Counterpart of pai_backend.engine.local.shim.command.
const readAndRun = `read -rd "" -u3;eval "exec 3<&-;unset REPLY;$REPLY"`

// commandText is a file of the command that ends with NUL, read from its beginning, and has no name any more.
func commandText(command string) (*os.File, error) {
	file, err := os.OpenFile(commandDraft, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err = os.Remove(commandDraft); err == nil {
		_, err = file.WriteString(command + "\x00")
	}
	if err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
