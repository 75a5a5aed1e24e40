package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// objectOutput is the -o flag of a command that lists API objects: a table, or
// any of kubectl's own forms.
type objectOutput struct {
	print     *genericclioptions.PrintFlags
	noHeaders bool
}

func newObjectOutput(cmd *cobra.Command) *objectOutput {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		panic(err) // the scheme is empty, so nothing can conflict
	}
	o := &objectOutput{print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme).WithDefaultOutput("table")}
	o.print.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "table, wide, name, json, yaml, jsonpath=..., go-template=... (as in kubectl get)"
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave the header out")
	return o
}

// printer returns nil for the tables.
func (o *objectOutput) printer() (printers.ResourcePrinter, error) {
	switch *o.print.OutputFormat {
	case "table", "wide":
		return nil, nil
	}
	printer, err := o.print.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err), *o.print.OutputFormat == "":
		return nil, usageErrorf("-o %q: write table, wide, name, json or yaml, or a jsonpath=... or go-template=... as for kubectl get; vernier export writes the trials of an experiment as CSV", *o.print.OutputFormat)
	case err != nil:
		return nil, usageErrorf("-o: %w", err)
	}
	return printer, nil
}

// list writes a list in the form of a printer; the printer of names takes single objects.
func (o *objectOutput) list(printer printers.ResourcePrinter, list runtime.Object, out io.Writer) error {
	if *o.print.OutputFormat != "name" {
		return printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return printer.PrintObj(item, out) })
}

func (o *objectOutput) wide() bool { return *o.print.OutputFormat == "wide" }

// writeValue writes one value as json or yaml.
func writeValue(out io.Writer, output string, value any) error {
	var data []byte
	var err error
	switch output {
	case "json":
		data, err = json.MarshalIndent(value, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(value)
	default:
		return usageErrorf("unknown output format %q", output)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
