package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"regexp"
	"strings"
	"testing"
)

// What a snapshot or a name says cannot become a program: the page has two script
// elements, the policy lets one run, and data cannot end the other.
func TestASharedPageRunsItsOwnProgramOnly(t *testing.T) {
	const attack = `</title></script><script>alert(1)</script><img src=x onerror=alert(2)>`
	page, err := Shared(attack, []byte(attack))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("there are %d script elements", n)
	}
	if strings.Contains(text, "onerror=alert") && !strings.Contains(text, "&lt;img") || strings.Contains(text, attack) {
		t.Error("the title is markup")
	}
	found := regexp.MustCompile(`(?s)<script type="application/octet-stream" id="snapshot">([A-Za-z0-9+/=]*)</script>\n<script type="module">(.*)</script>\n</body>`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal("there is no snapshot in base64 before the program")
	}
	sum := sha256.Sum256([]byte(found[2]))
	if policy := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(text, policy) {
		t.Errorf("the policy is not %s", policy)
	}
	if strings.Contains(found[2], "</script") || strings.Contains(found[2], "<!--") {
		t.Error("the program can be ended, or be commented out, by what it holds")
	}
	packed, err := base64.StdEncoding.DecodeString(found[1])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != attack {
		t.Errorf("the snapshot is %q, %v", got, err)
	}
}
