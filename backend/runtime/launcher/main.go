// The launcher is process 1 of a task's container. docs/engine-kubernetes.md has its contract, docs/runtime.md its reasons.
//
// One static program with several names, since it must run in any image:
//
//	launch               runs the task; --is-running asks whether it still runs
//	install TO STATE     copies the bundle that it is in to a task's pod, and checks it; called by its path
//	session              the shell of SSH logins
//	terminal FOLDER SHELL   what they run as the subsystem pai-terminal; hold-terminal is what it starts
//	ssh, scp, sftp       OpenSSH's clients, told of the job's other tasks
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const failed = 255 // exit status when there is none of a command

func main() {
	switch name := filepath.Base(strings.TrimPrefix(os.Args[0], "-")); name {
	case "launch":
		if len(os.Args) == 2 && os.Args[1] == "--is-running" {
			os.Exit(isRunning())
		}
		os.Exit(launch())
	case "install":
		if len(os.Args) != 3 {
			refuse(fmt.Errorf("usage: install RUNTIME STATE"))
		}
		if err := install(filepath.Dir(filepath.Dir(os.Args[0])), os.Args[1], os.Args[2]); err != nil {
			refuse(err)
		}
	case "session":
		refuse(session(os.Args[1:]))
	case "terminal":
		if len(os.Args) < 3 {
			refuse(fmt.Errorf("usage: terminal FOLDER SHELL [ARGUMENTS]"))
		}
		os.Exit(terminal(os.Args[1], os.Args[2:]))
	case holderCalled:
		if err := holdTerminal(os.Args[1], os.Args[2:]); err != nil {
			os.Exit(failed)
		}
	case "ssh", "scp", "sftp":
		refuse(client(name, os.Args[1:]))
	default:
		refuse(fmt.Errorf("%s: called by a name that is none of launch, install, session, terminal, ssh, scp, sftp", name))
	}
}

// isRunning is the exit status of the readiness probe: a kept task goes on when its command has ended.
func isRunning() int {
	if _, err := os.Lstat(exitFile); os.IsNotExist(err) {
		return 0
	}
	return 1
}

// say tells the reader of the task's standard error something. Nothing secret may be in it.
func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "pai: "+format+"\n", values...)
}

func refuse(err error) {
	say("%v", err)
	os.Exit(failed)
}
