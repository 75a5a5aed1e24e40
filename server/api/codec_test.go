package api

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestWhatIsUnknownInJSONIsRefused(t *testing.T) {
	exp, trial := runs(t)
	server := listen(t, serve(t, interceptor.Funcs{}, exp, trial))
	for name, c := range map[string]struct{ kind, path, body, want string }{
		"a field":             {"application/json", "DashboardService/Analyze", `{"parent": "` + parent + `", "objectiv": 0, "history": {}}`, `unknown field "objectiv"`},
		"a field within":      {"application/json; charset=utf-8", "DashboardService/Analyze", `{"parent": "` + parent + `", "importance": {"metod": "F_ANOVA"}}`, `unknown field "metod"`},
		"the name of a value": {"application/json", "DashboardService/Analyze", `{"parent": "` + parent + `", "importance": {"method": "FANOVA"}}`, `"FANOVA"`},
		"another service":     {"application/json", "ExperimentService/GetExperiment", `{"nam": "` + parent + `"}`, `unknown field "nam"`},
		"no body":             {"application/json", "DashboardService/Analyze", "", "the body is empty"},
		"nothing unknown":     {"application/json", "DashboardService/Analyze", `{"parent": "` + parent + `", "history": {}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/vernier.v1."+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", c.kind)
			r.Header.Set("Authorization", "Bearer any")
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			refused := strings.Contains(string(got), `"invalid_argument"`) && strings.Contains(string(got), strings.ReplaceAll(c.want, `"`, `\"`))
			if err != nil || (answer.StatusCode == http.StatusOK) != (c.want == "") || (c.want != "" && !refused) {
				t.Errorf("%d %s, %v", answer.StatusCode, got, err)
			}
		})
	}
}
