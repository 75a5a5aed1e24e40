package agent

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Image says what stands for the images whose names match a pattern. No image
// is ever run; the zero value means the host as it is.
type Image struct {
	// Pattern is a glob over the image's name as the container writes it, in
	// the syntax of [path.Match], where "*" also matches "/". An empty pattern
	// matches every image.
	Pattern string
	// Path lists directories that come before the host's PATH.
	Path []string
	// Venv is a Python virtual environment: its bin directory comes first in
	// PATH, and VIRTUAL_ENV is set.
	Venv string
	// Dir is the working directory of containers that name none. Default: "/".
	Dir string
	// Env holds further variables of the image.
	Env []corev1.EnvVar
}

// checkImages validates the mapping.
func checkImages(images []Image) error {
	for i, m := range images {
		if _, err := path.Match(m.Pattern, ""); err != nil {
			return fmt.Errorf("images[%d]: pattern %q: %w", i, m.Pattern, err)
		}
		dirs := append([]string{}, m.Path...)
		for _, dir := range append(dirs, m.Venv, m.Dir) {
			if dir != "" && !filepath.IsAbs(dir) {
				return fmt.Errorf("images[%d]: %q is not an absolute path", i, dir)
			}
		}
	}
	return nil
}

// findImage returns the first mapping that matches, or the host.
func findImage(images []Image, name string) Image {
	for _, m := range images {
		if imageMatches(m.Pattern, name) {
			return m
		}
	}
	return Image{}
}

func imageMatches(pattern, name string) bool {
	if pattern == "" || pattern == name {
		return true
	}
	// path.Match stops at "/", which image names are full of.
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, err := path.Match(flat(pattern), flat(name))
	return err == nil && ok
}

// hostVariables are the agent's own variables that containers see. The others
// may hold secrets.
var hostVariables = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"VIRTUAL_ENV", "CONDA_PREFIX"}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageEnv is the environment that an image stands for.
func imageEnv(m Image, host func(string) string) []corev1.EnvVar {
	var env []corev1.EnvVar
	search := append([]string{}, m.Path...)
	if m.Venv != "" {
		search = append([]string{filepath.Join(m.Venv, "bin")}, search...)
	}
	for _, name := range hostVariables {
		value := host(name)
		if name == "PATH" {
			if value == "" {
				value = defaultPath
			}
			value = strings.Join(append(search, value), string(os.PathListSeparator))
		}
		if value != "" {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	if m.Venv != "" {
		env = append(env, corev1.EnvVar{Name: "VIRTUAL_ENV", Value: m.Venv})
	}
	return append(env, m.Env...)
}
