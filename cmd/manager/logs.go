package main

import (
	"io"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// logHandler writes logs in the format and from the level that the options say.
func logHandler(to io.Writer, o options) slog.Handler {
	opts := &slog.HandlerOptions{Level: o.level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == "err" { // logr's
			a.Key = "error"
		}
		return a
	}}
	if o.logFormat == "text" {
		return sameKeys{slog.NewTextHandler(to, opts)}
	}
	return sameKeys{slog.NewJSONHandler(to, opts)}
}

// sameKeys gives what controller-runtime says of an object the keys that all logs have:
// experiment or trial, with its name, beside namespace. It drops what says the same
// again.
type sameKeys struct{ slog.Handler }

func (h sameKeys) WithAttrs(attrs []slog.Attr) slog.Handler {
	var kept []slog.Attr
	named := slices.ContainsFunc(attrs, func(a slog.Attr) bool { _, ok := a.Value.Any().(klog.ObjectRef); return ok })
	for _, a := range attrs {
		ref, isObject := a.Value.Any().(klog.ObjectRef)
		switch {
		case a.Key == "name" && named || a.Key == "controllerGroup" || a.Key == "controllerKind":
		case isObject:
			kept = append(kept, slog.String(strings.ToLower(a.Key), ref.Name))
		default:
			kept = append(kept, a)
		}
	}
	return sameKeys{h.Handler.WithAttrs(kept)}
}

func (h sameKeys) WithGroup(name string) slog.Handler { return sameKeys{h.Handler.WithGroup(name)} }
