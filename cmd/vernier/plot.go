package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/cmd/vernier/plot"
)

// chartMakers make the charts of a kind, by name.
var chartMakers = []struct {
	name, about string
	make        func(context.Context, *plotOptions, *session, experimentView) ([]plot.Chart, error)
}{
	{"history", "the values in the order of trials, and the best so far", historyCharts},
	{"curves", "the curves of the best trials over their steps", curveCharts},
	{"slice", "the objective over each parameter", sliceCharts},
	{"parallel", "each trial as a line through its parameters, the best ones in front", parallelCharts},
	{"importance", "how much each parameter matters, by functional ANOVA", importanceCharts},
	{"pareto", "two objectives, or two metrics, against each other", paretoCharts},
}

type plotOptions struct {
	metric string
	top    int
	ascii  bool
	size   string
	output string
	store  string
	own    ownStore
}

func newPlotCommand(open opener, own ownStore) *cobra.Command {
	o := &plotOptions{own: own}
	var names, about []string
	for _, m := range chartMakers {
		names = append(names, m.name)
		about = append(about, fmt.Sprintf("  %-12s %s", m.name, m.about))
	}
	cmd := &cobra.Command{
		Use:   "plot EXPERIMENT [" + strings.Join(names, "|") + "]",
		Short: "Draw charts of an experiment, in the terminal or into a file",
		Long:  "Draw charts of an experiment. Without a name, these are history and importance.\n\n" + strings.Join(about, "\n"),
		Example: `  vernier plot charlm
  vernier plot charlm curves --top 5
  vernier plot charlm slice -o slice.svg`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || len(args) > 2:
				return usageErrorf("%s takes an experiment, and perhaps a chart: write %s", cmd.CommandPath(), cmd.UseLine())
			case len(args) == 2 && !slices.Contains(names, args[1]):
				return usageErrorf("there is no chart %q: write one of %s", args[1], strings.Join(names, ", "))
			}
			if err := noTrial(cmd, args[0]); err != nil {
				return err
			}
			return o.run(cmd.Context(), args, streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}, open)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "file to write instead, that ends in .svg, .png or .html")
	f.StringVarP(&o.metric, "metric", "m", "", "metric to draw (default: the objective); with pareto, the second one")
	f.IntVar(&o.top, "top", 8, "how many trials curves and parallel show in front")
	f.BoolVar(&o.ascii, "ascii", false, "use ASCII characters only, as on a dumb terminal")
	f.StringVar(&o.size, "size", "", "characters of a chart, as 80x20 (default: the terminal's width)")
	f.StringVar(&o.store, "store", "", "store of the points, for curves (default: that of the embedded instance)")
	return cmd
}

func (o *plotOptions) run(ctx context.Context, args []string, s streams, open opener) error {
	format := strings.TrimPrefix(filepath.Ext(o.output), ".")
	if o.output != "" && !slices.Contains(plot.Formats, format) {
		return usageErrorf("-o %s: name a file that ends in .svg, .png or .html", o.output)
	}
	style, err := o.style(s)
	if err != nil {
		return err
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	view, err := loadExperiment(ctx, session.client, session.key(args[0]))
	if err != nil {
		return err
	}
	wanted := append(args[1:], "history", "importance")
	if len(args) > 1 {
		wanted = args[1:]
	}
	var charts []plot.Chart
	for _, m := range chartMakers {
		if !slices.Contains(wanted, m.name) {
			continue
		}
		made, err := m.make(ctx, o, session, view)
		if err != nil {
			return err
		}
		charts = append(charts, made...)
	}
	if o.output == "" {
		return writeCharts(s, charts, style)
	}
	var picture bytes.Buffer
	if err := plot.Write(&picture, format, "Experiment "+view.Experiment.Name, charts); err != nil {
		return err
	}
	if err := os.WriteFile(o.output, picture.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

func writeCharts(s streams, charts []plot.Chart, style plot.Style) error {
	out := s.out
	if style.Color {
		out = withColors(out)
	}
	for i, c := range charts {
		if i > 0 {
			fmt.Fprintln(out)
		}
		for _, line := range c.Text(style) {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// style is that of the terminal. A dumb one, and one whose locale is not UTF-8, gets
// ASCII; NO_COLOR and what is no terminal get no colours.
func (o *plotOptions) style(s streams) (plot.Style, error) {
	style := plot.Style{Width: 80, Height: 18, ASCII: o.ascii || asciiOnly()}
	if file := onTerminal(s.out); file != nil {
		style.Width = terminalSize(file).width
		style.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if o.size == "" {
		return style, nil
	}
	if n, err := fmt.Sscanf(o.size, "%dx%d", &style.Width, &style.Height); n != 2 || err != nil || style.Width < 30 || style.Height < 8 || style.Width > 1000 || style.Height > 500 {
		return style, usageErrorf("--size %s: write the characters of a line and the lines, from 30x8 to 1000x500, as in 80x20", o.size)
	}
	return style, nil
}

// asciiOnly says whether a terminal shows other characters than ASCII by luck only.
func asciiOnly() bool { return os.Getenv("TERM") == "dumb" || !utf8Locale(os.Getenv) }

// utf8Locale says whether the locale is UTF-8, or nothing says what it is.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := getenv(name); value != "" {
			upper := strings.ToUpper(value)
			return strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8")
		}
	}
	return true
}
