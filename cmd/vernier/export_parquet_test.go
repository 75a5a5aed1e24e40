package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// readParquet reads rows as any reader does, by the types that the file says.
func readParquet(t *testing.T, file []byte) (types map[string]string, rows []map[string]any) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	types = map[string]string{}
	for _, c := range f.Schema().Fields() {
		types[c.Name()] = c.Type().String()
	}
	r := parquet.NewReader(f)
	defer r.Close()
	for {
		row := map[string]any{}
		if err := r.Read(&row); err == io.EOF {
			return types, rows
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

func TestExportParquet(t *testing.T) {
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters,
		v1beta1.ParameterSpec{Name: "layers", ParameterType: v1beta1.ParameterTypeInt},
		v1beta1.ParameterSpec{Name: "width", ParameterType: v1beta1.ParameterTypeCategorical},
		v1beta1.ParameterSpec{Name: "name", ParameterType: v1beta1.ParameterTypeCategorical})
	ran, waits := aTrial(3, v1beta1.TrialSucceeded, "0.25"), aTrial(4, v1beta1.TrialCreated, "")
	ran.Spec.ParameterAssignments = []v1beta1.ParameterAssignment{{Name: "lr", Value: "1e-05"}, {Name: "layers", Value: "2"}, {Name: "width", Value: "64"}, {Name: "name", Value: "=a"}}
	waits.Spec.ParameterAssignments = []v1beta1.ParameterAssignment{{Name: "lr", Value: "1"}}
	waits.Status.StartTime = nil
	var out bytes.Buffer
	if err := exportParquet(&out, newExperimentView(e, []v1beta1.Trial{ran, waits}), noon); err != nil {
		t.Fatal(err)
	}
	types, rows := readParquet(t, out.Bytes())
	for name, want := range map[string]string{
		"trial": "INT(64,true)", "start": "TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS)", "best": "BOOLEAN", "loss": "DOUBLE",
		"lr": "DOUBLE", "layers": "INT(64,true)", "width": "STRING", "param.name": "STRING",
	} {
		if types[name] != want {
			t.Errorf("the column %s is %q, want %q", name, types[name], want)
		}
	}
	pick := func(row map[string]any) string {
		return fmt.Sprintln(row["trial"], row["name"], row["loss"], row["lr"], row["layers"], row["width"], row["param.name"], row["seconds"])
	}
	want := []string{"3 charlm-0003 0.25 1e-05 2 64 =a 3\n", "4 charlm-0004 <nil> 1 <nil> <nil> <nil> <nil>\n"}
	if diff := cmp.Diff(want, []string{pick(rows[0]), pick(rows[1])}); diff != "" {
		t.Error(diff)
	}
}

// Another export of the same experiment has the same types, whatever the values are.
func TestExportParquetHasTheTypesOfTheSpace(t *testing.T) {
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "layers", ParameterType: v1beta1.ParameterTypeInt})
	export := func(lr, layers, loss string) map[string]string {
		trial := aTrial(3, v1beta1.TrialSucceeded, loss)
		trial.Spec.ParameterAssignments = []v1beta1.ParameterAssignment{{Name: "lr", Value: lr}}
		if layers != "" {
			trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "layers", Value: layers})
		}
		var out bytes.Buffer
		if err := exportParquet(&out, newExperimentView(e, []v1beta1.Trial{trial}), noon); err != nil {
			t.Fatal(err)
		}
		types, _ := readParquet(t, out.Bytes())
		return types
	}
	want := export("0.5", "2", "0.25")
	if diff := cmp.Diff(want, export("1", "", "3")); diff != "" {
		t.Error(diff)
	}
	if want["loss"] != "DOUBLE" || want["lr"] != "DOUBLE" || want["layers"] != "INT(64,true)" {
		t.Errorf("the types are %v", want)
	}
	if got := export("1", "2", "broken")["loss"]; got != "STRING" {
		t.Errorf("a metric with a text is %s", got)
	}
}

func TestExportParquetOfCurves(t *testing.T) {
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	trial := aTrial(3, v1beta1.TrialSucceeded, "0.25")
	trial.UID = "3"
	id := collector.TrialID{Namespace: "default", Experiment: "charlm", Name: trial.Name, UID: "3"}
	points := []collector.Point{
		{Metric: "loss", Value: 0.5, Step: 1, Time: noon, Source: "a", Seq: 1},
		{Metric: "loss", Value: 0.25, Step: collector.NoStep, Time: noon.Add(time.Second), Source: "a", Seq: 2},
	}
	if err := s.Append(context.Background(), id, collector.Attempt{ID: "x", Started: noon}, points); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := exportPoints(t.Context(), &out, s, newExperimentView(anExperiment(), []v1beta1.Trial{trial}), 1); err != nil {
		t.Fatal(err)
	}
	if f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len())); err != nil || len(f.RowGroups()) != 2 {
		t.Errorf("two groups of one row are asked for: %v", err)
	}
	step, first, second := int64(1), noon, noon.Add(time.Second)
	want := []pointRecord{{3, "loss", 1, &step, &first, 0.5}, {3, "loss", 1, nil, &second, 0.25}}
	got, err := parquet.Read[pointRecord](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
