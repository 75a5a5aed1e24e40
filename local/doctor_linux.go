package local

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// writable says whether this process may make files in a directory.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return s.Bavail * uint64(s.Bsize), err
}

// limitFindings are about what the kernel allows this user.
func limitFindings() []Finding {
	findings := []Finding{inotifyFinding(), controlGroupFinding()}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Max < fewFiles {
		findings = append(findings, needs(LevelWarn, "open files", "raise the limit: ulimit -Hn, or LimitNOFILE of the service", "at most %d at once", files.Max))
	} else {
		findings = append(findings, ok("open files", "at most %d at once", files.Max))
	}
	return findings
}

func inotifyFinding() Finding {
	const name = "inotify"
	limit := func(which string) string {
		data, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_" + which)
		return strings.TrimSpace(string(data))
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_ = unix.Close(fd)
	}
	switch instances, _ := strconv.Atoi(limit("instances")); {
	case errors.Is(err, unix.EMFILE):
		return needs(LevelFail, name, "sysctl fs.inotify.max_user_instances=1024", "all %d instances of this user are in use", instances)
	case err != nil:
		return needs(LevelWarn, name, "", "%v", err)
	}
	return ok(name, "%s instances, %s watches for a user", limit("instances"), limit("watches"))
}

func controlGroupFinding() Finding {
	const name = "control groups"
	data, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(data)) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found && unix.Access("/sys/fs/cgroup/cgroup.controllers", unix.R_OK) == nil {
			return ok(name, "version 2, %s; memory limits of trials are sampled and cpu limits not enforced", path)
		}
	}
	return ok(name, "version 1 or none; memory limits of trials are sampled and cpu limits not enforced")
}

// clockFinding says whether the clock can be right.
func clockFinding(now time.Time) Finding {
	const name = "clock"
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	switch {
	case now.Year() < 2024:
		return needs(LevelFail, name, "set it: certificates would not be valid", "it shows %s", now.Format(time.RFC3339))
	case err == nil && (state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0):
		return needs(LevelWarn, name, "run a time service, such as systemd-timesyncd, unless the host of this machine keeps it", "%s, not synchronized", now.Format(time.RFC3339))
	}
	return ok(name, "%s", now.Format(time.RFC3339))
}
