package main

import (
	"os"
	"syscall"
)

// What sshd sets for a login by the account; a session has what the command has instead.
var ofLogin = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "MAIL": true, "PWD": true,
}

// What the broker's certificates force on logins that may run nothing.
const nothing = "/bin/false"

// session is what sshd runs as the user's shell: it becomes bash in the task's world. It returns only what hindered it.
//
// The bash is no login shell: /etc/profile of many images sets PATH anew, and would hide the task's.
func session(arguments []string) error {
	if len(arguments) == 2 && arguments[0] == "-c" && arguments[1] == nothing {
		os.Exit(1) // without bash, which the client's BASH_ENV would have run something
	}
	text, err := os.ReadFile(worldFile)
	if err != nil {
		return err
	}
	made := worldOf(entries(text))
	_, hasShell := made.values["SHELL"]
	uid := made.values[mark]
	for _, each := range ownVariables() {
		if !ofLogin[each.name] {
			made.set(each.name, each.value)
		}
	}
	made.set(mark, uid)
	bash, err := find("bash", made.values["PATH"])
	if err != nil {
		return err
	}
	shell, program := bash, bash
	if !hasShell {
		made.set("SHELL", bash)
	} else if executableByUs(made.values["SHELL"]) {
		shell = made.values["SHELL"]
	}
	if len(arguments) == 0 {
		program = shell
	}
	if err := os.Chdir(workDirectory); err != nil {
		return err
	}
	if len(arguments) == 2 && arguments[0] == "-c" && arguments[1] == terminalProgram { // the subsystem, without bash between
		return syscall.Exec(terminalProgram, []string{terminalProgram, terminals, shell}, made.list())
	}
	return syscall.Exec(program, append([]string{program}, arguments...), made.list())
}
