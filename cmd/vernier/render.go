package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

//go:embed render_tensorflow.yaml
var tensorflowText string

// tensorflow is what `vernier render tensorflow` fills its template with.
type tensorflow struct {
	Name, Image, Size, Metric, Goal string
	Workers, PS, Port               int
	Ranges                          []string // as lr=0.01:0.1
	Command                         []string
}

func newRenderCommand() *cobra.Command {
	render := &cobra.Command{Use: "render", Short: "Print what runs a kind of training on Kubernetes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var t tensorflow
	command := &cobra.Command{
		Use:   "tensorflow NAME [flags] -- COMMAND...",
		Short: "Parameter servers and workers in an Indexed Job, found by a headless Service",
		Long: `Print an experiment whose trials are distributed TensorFlow on plain Kubernetes, with
the Service by which its pods find each other and two volumes, /data and /logs.

The command is that of a pod. It is also given --job_name, --task_index, --ps_hosts
and --worker_hosts, and ${trialParameters.X} in it is a parameter of the search.`,
		Example: `  vernier render tensorflow mnist --workers 3 --ps 2 --image train --range lr=0.001:0.1 -- \
    python3 /train.py '--lr=${trialParameters.lr}' > mnist.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageErrorf("%s needs a name and a command: write %s", cmd.CommandPath(), cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Name, t.Command = args[0], args[1:]
			return t.render(cmd.OutOrStdout())
		},
	}
	f := command.Flags()
	f.IntVar(&t.Workers, "workers", 2, "how many workers train; the first one's metrics are collected")
	f.IntVar(&t.PS, "ps", 1, "how many parameter servers there are")
	f.IntVar(&t.Port, "port", 2222, "where each pod listens")
	f.StringVar(&t.Image, "image", "tensorflow/tensorflow", "image of all pods")
	f.StringVar(&t.Metric, "metric", "loss", "metric that the first worker prints as NAME=VALUE")
	f.StringVar(&t.Goal, "type", "minimize", "what is wanted of it: minimize or maximize")
	f.StringVar(&t.Size, "volume-size", "10Gi", "size of the volumes for data and logs")
	f.StringArrayVar(&t.Ranges, "range", nil, "NAME=MIN:MAX of a parameter of the search; may be given several times")
	render.AddCommand(command)
	return render
}

func (t tensorflow) render(w io.Writer) error {
	if wrong := validation.IsDNS1035Label(t.Name); len(wrong) > 0 {
		return usageErrorf("the name %q: %s", t.Name, strings.Join(wrong, "; "))
	}
	if t.Workers < 1 || t.PS < 1 {
		return usageErrorf("--workers %d, --ps %d: give at least one of each", t.Workers, t.PS)
	}
	if _, err := resource.ParseQuantity(t.Size); err != nil {
		return usageErrorf("--volume-size %q: %v", t.Size, err)
	}
	for _, p := range t.Parameters() {
		if p.Min == "" || p.Max == "" || !strings.Contains(strings.Join(t.Command, " "), "${trialParameters."+p.Name+"}") {
			return usageErrorf("--range %s=%s:%s: write NAME=MIN:MAX, and ${trialParameters.NAME} in the command", p.Name, p.Min, p.Max)
		}
	}
	text, err := template.New("tensorflow").Parse(tensorflowText)
	if err != nil {
		return fmt.Errorf("read the template of tensorflow: %w", err)
	}
	return text.Execute(w, t)
}

// Pods are parameter servers, then workers.
func (t tensorflow) Pods() int { return t.PS + t.Workers }

// Last is the index of the last worker.
func (t tensorflow) Last() int { return t.Pods() - 1 }

// Volumes of each experiment, mounted by their names.
func (t tensorflow) Volumes() []string { return []string{"data", "logs"} }

// searched is a parameter of the search.
type searched struct{ Name, Min, Max string }

// Parameters of the search.
func (t tensorflow) Parameters() (all []searched) {
	for _, r := range slices.Sorted(slices.Values(t.Ranges)) {
		name, space, _ := strings.Cut(r, "=")
		least, most, _ := strings.Cut(space, ":")
		all = append(all, searched{name, least, most})
	}
	return all
}
