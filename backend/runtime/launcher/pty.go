package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"
)

type windowSize struct{ rows, columns, x, y uint16 }

// startAtTerminal starts a program at a terminal of its own. Source: pts(4), ioctl_tty(2).
func startAtTerminal(program []string, term string, size windowSize) (*os.File, *exec.Cmd, error) {
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	command, err := startAtOther(own, program, term, size)
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	return own, command, nil
}

func startAtOther(own *os.File, program []string, term string, size windowSize) (*exec.Cmd, error) {
	var number, unlocked int32
	if err := control(own, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked)); err != nil {
		return nil, err
	}
	if err := control(own, syscall.TIOCGPTN, unsafe.Pointer(&number)); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("/dev/pts/%d", number)
	other, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	var attributes syscall.Termios
	if err := control(other, syscall.TCGETS, unsafe.Pointer(&attributes)); err != nil {
		return nil, err
	}
	attributes.Iflag |= syscall.IUTF8
	if err := control(other, syscall.TCSETS, unsafe.Pointer(&attributes)); err != nil {
		return nil, err
	}
	if err := control(own, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		return nil, err
	}
	command := exec.Command(program[0])
	command.Args = program
	for _, each := range os.Environ() {
		if !strings.HasPrefix(each, "SSH_AUTH_SOCK=") {
			command.Env = append(command.Env, each)
		}
	}
	command.Env = append(command.Env, "TERM="+term, "SSH_TTY="+name) // of two with one name the last counts
	command.Stdin, command.Stdout, command.Stderr = other, other, other
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return command, command.Start()
}

// resize sets another size. With repaint, programs are told also when it is the same.
func resize(terminal *os.File, size windowSize, repaint bool) {
	var before windowSize
	if control(terminal, syscall.TIOCGWINSZ, unsafe.Pointer(&before)) != nil {
		return
	}
	if before.rows != size.rows || before.columns != size.columns {
		control(terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
		return
	}
	var group int32
	if repaint && control(terminal, syscall.TIOCGPGRP, unsafe.Pointer(&group)) == nil && group > 0 {
		syscall.Kill(-int(group), syscall.SIGWINCH)
	}
}

func control(terminal *os.File, request uintptr, value unsafe.Pointer) error {
	way, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var number syscall.Errno
	if err := way.Control(func(descriptor uintptr) {
		_, _, number = syscall.Syscall(syscall.SYS_IOCTL, descriptor, request, uintptr(value))
	}); err != nil {
		return err
	}
	if number != 0 {
		return number
	}
	return nil
}
