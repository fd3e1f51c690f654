package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unicode/utf8"
)

const messageCharacters = 600 // with it the record keeps below the kubelet's 4,096 bytes

// verdict is why something ended, in the words of the record.
type verdict struct{ reason, message, causer string }

// record tells how the command ended. docs/engine-kubernetes.md has its fields.
type record struct {
	Version int      `json:"version"`
	Code    *int     `json:"code"`
	Signal  *int     `json:"signal"`
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Causer  string   `json:"causer"`
	Started *float64 `json:"started"`
	At      float64  `json:"at"`
}

func recordOf(found verdict, status *syscall.WaitStatus, started time.Time) record {
	made := record{Version: 1, Reason: found.reason, Message: short(found.message), Causer: found.causer}
	made.At = seconds(time.Now())
	if !started.IsZero() {
		since := seconds(started)
		made.Started = &since
	}
	if status != nil && status.Signaled() {
		number := int(status.Signal())
		made.Signal = &number
	} else if status != nil {
		code := status.ExitStatus()
		made.Code = &code
	}
	return made
}

// exitStatus is the one of the container.
func (r record) exitStatus() int {
	switch {
	case r.Code != nil:
		return *r.Code
	case r.Signal != nil:
		return 128 + *r.Signal
	}
	return failed
}

// write leaves the record: for the probe and for SSH sessions of a kept task, then for the kubelet.
func (r record) write() {
	text, err := json.Marshal(r)
	if err == nil {
		err = errors.Join(replace(exitFile, text, 0o644), overwrite(terminationLog, text))
	}
	if err != nil {
		say("how the task ended could not be written: %v", err)
	}
}

// short cuts a message to what the record may hold.
func short(message string) string {
	if utf8.RuneCountInString(message) <= messageCharacters {
		return message
	}
	return string([]rune(message)[:messageCharacters-1]) + "…"
}

func seconds(at time.Time) float64 {
	return float64(at.UnixMicro()) / 1e6
}

// replace writes a file under another name and renames it, so that nobody ever reads half of it.
func replace(path string, content []byte, mode os.FileMode) error {
	draft := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(draft, content, mode); err != nil {
		os.Remove(draft)
		return err
	}
	return os.Rename(draft, path)
}

// overwrite replaces the content of a file that is a mount of its own: it cannot be renamed over.
func overwrite(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	if err == nil {
		err = file.Truncate(int64(len(content)))
	}
	return errors.Join(err, file.Close())
}

// unwritten is the verdict when something could not be written that the command needs.
func unwritten(err error) verdict {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return verdict{"disk-full", err.Error(), "resource"}
	}
	return verdict{"start-failed", err.Error(), "platform"}
}
