package lines_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/server/lines"
)

func TestServeReadsAnyLines(t *testing.T) {
	long := `{"ask":1,"id":"` + strings.Repeat("x", 10_000_000) + `"}`
	fits := `{"ask":0,"id":"` + strings.Repeat("x", lines.MaxLine-17) + `"}`
	cases := map[string]struct {
		in   string
		want []string // beginnings
	}{
		"nothing":                    {"", []string{""}},
		"no newline at the end":      {`{"ask":0}`, []string{`{"trials":[]`, ""}},
		"a line of 10 MB":            {long + "\n" + `{"ask":0}` + "\n", []string{`{"error":"the line is longer than 8388608 bytes; split`, `{"trials":[]`, ""}},
		"10 MB without a newline":    {long, []string{`{"error":"the line is longer`, ""}},
		"a line as long as may be":   {fits + "\n", []string{`{"trials":[],"exhausted":false,"id":"xxx`, ""}},
		"one byte longer":            {fits + " \n", []string{`{"error":"the line is longer`, ""}},
		"an empty line":              {"\n\r\n", []string{`{"error":"the line is no JSON: there is nothing`, `{"error":"the line is no JSON: there is nothing`, ""}},
		"bytes that are no text":     {"\x00\xff\n{\"ask\":0}\n", []string{`{"error":"the line is no JSON: invalid`, `{"trials":[]`, ""}},
		"requests that came at once": {strings.Repeat("{\"ask\":0}\n", 3), []string{`{"trials":[]`, `{"trials":[]`, `{"trials":[]`, ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			st := study(t, oneSpace)
			var out bytes.Buffer
			if err := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)}).Serve(t.Context(), strings.NewReader(c.in), &out); err != nil {
				t.Fatal(err)
			}
			got := strings.Split(out.String(), "\n")
			if len(got) != len(c.want) {
				t.Fatalf("%d answers, want %d", len(got)-1, len(c.want)-1)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("answer %d begins %.80q, want %q", i, got[i], c.want[i])
				}
			}
		})
	}
}

// TestServeAnswersBeforeItReadsOn holds that each answer is written before the next request is read.
func TestServeAnswersBeforeItReadsOn(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	st := study(t, oneSpace)
	done := make(chan error, 1)
	go func() {
		done <- lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)}).Serve(t.Context(), in, out)
	}()
	decoder := json.NewDecoder(answers)
	for i := range 3 {
		if _, err := io.WriteString(requests, "{\"ask\":1}\n"); err != nil {
			t.Fatal(err)
		}
		var got struct{ Trials []struct{ Number int } }
		if err := decoder.Decode(&got); err != nil || len(got.Trials) != 1 || got.Trials[0].Number != i {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	_ = requests.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServeEndsWhenItsAnswersAreNotRead(t *testing.T) {
	_, out := io.Pipe()
	out.CloseWithError(errors.New("gone"))
	st := study(t, oneSpace)
	err := lines.New(lines.Config{Study: st, Algorithm: build(t, "random", st.Space)}).Serve(t.Context(), strings.NewReader("{\"ask\":1}\n"), out)
	if err == nil || !strings.Contains(err.Error(), "write an answer") {
		t.Errorf("got %v", err)
	}
}
