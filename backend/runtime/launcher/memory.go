package main

import (
	"os"
	"path"
	"strconv"
	"strings"
)

const controlGroups = "/sys/fs/cgroup"

// oomKills is how many processes here the kernel has killed for lack of memory; -1 when nobody counts.
// Source: the kernel's documentation, cgroup-v2 memory.events and cgroup-v1 memory.oom_control.
func oomKills() int {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return -1
	}
	for _, counter := range counters(string(membership)) {
		text, err := os.ReadFile(counter)
		if err != nil { // not here: in a container the hierarchy may be mounted from further down
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				if number, err := strconv.Atoi(strings.TrimSpace(count)); err == nil {
					return number
				}
			}
		}
	}
	return -1
}

// counters are the files that may have the counter, the most exact first.
func counters(membership string) []string {
	var found []string
	for _, line := range strings.Split(membership, "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		inside := []string{fields[2], "/"}
		for _, controller := range strings.Split(fields[1], ",") {
			if controller == "memory" {
				for _, place := range inside {
					found = append(found, path.Join(controlGroups, "memory", place, "memory.oom_control"))
				}
			}
		}
		if fields[1] == "" {
			for _, name := range []string{"memory.events.local", "memory.events"} {
				for _, place := range inside {
					found = append(found, path.Join(controlGroups, place, name))
				}
			}
		}
	}
	return found
}
