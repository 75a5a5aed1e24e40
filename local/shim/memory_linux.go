package shim

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	sampleEvery = 150 * time.Millisecond
	// sampleShare is how many times longer than a sample takes the sampler rests.
	sampleShare = 20
)

// watchMemory samples a run until done is closed and calls exceeded, once, when it
// holds more than limit. Asking for the exact figure is dear, so it is asked for
// only when the sum of the resident sizes, which counts shared pages once for each
// process, is above the limit.
func watchMemory(t tree, limit int64, done <-chan struct{}, exceeded func(message string)) {
	timer := time.NewTimer(sampleEvery)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		began := time.Now()
		if members, err := t.members(); err == nil {
			if held := holds(members, limit); held > limit {
				exceeded(fmt.Sprintf("its %d processes held %s, more than the limit of %s (%d of %d bytes)",
					len(members), mebibytes(held), mebibytes(limit), held, limit))
				return
			}
		}
		timer.Reset(max(sampleEvery, sampleShare*time.Since(began)))
	}
}

// holds is an upper bound of the memory of the members when that is within the
// limit, and else the memory that is theirs: anonymous and shared memory, each
// shared page counted in parts.
func holds(members map[int]process, limit int64) int64 {
	var resident int64
	for _, p := range members {
		resident += p.residentPages * int64(os.Getpagesize())
	}
	if resident <= limit {
		return resident
	}
	var exact int64
	for pid, p := range members {
		n, err := proportional(pid)
		if err != nil {
			if _, gone := readProcess(pid); gone != nil {
				continue
			}
			n = p.residentPages * int64(os.Getpagesize())
		}
		exact += n
	}
	return exact
}

// proportional reads anonymous and shared memory from /proc/PID/smaps_rollup.
func proportional(pid int) (int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	return parseRollup(data)
}

func parseRollup(data []byte) (total int64, err error) {
	err = errors.New("the kernel does not tell Pss_Anon")
	for line := range strings.Lines(string(data)) {
		var name string
		var kib int64
		_, wrong := fmt.Sscanf(line, "%s %d kB", &name, &kib)
		if name != "Pss_Anon:" && name != "Pss_Shmem:" {
			continue
		}
		if wrong != nil {
			return 0, fmt.Errorf("%s %w", name, wrong)
		}
		total, err = total+kib<<10, nil
	}
	return total, err
}

func mebibytes(n int64) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
}
