package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The part of SPDX 2.3 that a list of Go modules needs.
type (
	bill struct {
		Version      string         `json:"spdxVersion"`
		License      string         `json:"dataLicense"`
		ID           string         `json:"SPDXID"`
		Name         string         `json:"name"`
		Namespace    string         `json:"documentNamespace"`
		Creation     creation       `json:"creationInfo"`
		Packages     []packageEntry `json:"packages"`
		Relationship []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	packageEntry struct {
		ID        string      `json:"SPDXID"`
		Name      string      `json:"name"`
		Version   string      `json:"versionInfo,omitempty"`
		Location  string      `json:"downloadLocation"`
		Analyzed  bool        `json:"filesAnalyzed"`
		Checksums []checksum  `json:"checksums,omitempty"`
		Refs      []reference `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// newBill lists the modules that a binary was built from, as the linker recorded
// them. It has no time of its own, so that equal binaries have equal lists.
func newBill(p program, binary string, content []byte, version string) (bill, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return bill{}, err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	b := bill{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:      p.name + "-" + version,
		Namespace: "https://github.com/vernier-ml/vernier/spdx/" + p.name + "/" + digest,
		Creation:  creation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: vernier-images"}},
		Packages: []packageEntry{{
			ID: "SPDXRef-binary", Name: p.name, Version: version, Location: "NOASSERTION",
			Checksums: []checksum{{"SHA256", digest}},
		}},
		Relationship: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-binary"}},
	}
	modules := []packageEntry{module("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, module(m.Path, m.Version))
	}
	for i, m := range modules {
		m.ID = fmt.Sprintf("SPDXRef-module-%d", i)
		b.Packages = append(b.Packages, m)
		b.Relationship = append(b.Relationship, relationship{"SPDXRef-binary", "CONTAINS", m.ID})
	}
	return b, nil
}

func module(path, version string) packageEntry {
	return packageEntry{
		Name: path, Version: version, Location: "NOASSERTION",
		Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}

func writeBill(path string, p program, binary string, content []byte, version string) error {
	b, err := newBill(p, binary, content, version)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
