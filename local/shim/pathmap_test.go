package shim

import "testing"

func TestMapText(t *testing.T) {
	mounts := []Mount{
		{MountPath: "/data/cache", HostPath: "/host/cache"},
		{MountPath: "/data", HostPath: "/data/host"},
		{MountPath: "/var/log/katib", HostPath: "/h/logs"},
	}
	cases := map[string]struct{ in, want string }{
		"a whole path":                      {"/data", "/data/host"},
		"the beginning of a path":           {"/data/train.csv", "/data/host/train.csv"},
		"the longest mount path":            {"/data/cache/x", "/host/cache/x"},
		"what was put in is not read again": {"/data:/data", "/data/host:/data/host"},
		"an option's value":                 {"--dir=/data/x", "--dir=/data/host/x"},
		"in quotes":                         {`open("/data")`, `open("/data/host")`},
		"in a shell line":                   {"cat </data/a >>/var/log/katib/m;ls /data", "cat </data/host/a >>/h/logs/m;ls /data/host"},
		"a list":                            {"/data,/data/cache", "/data/host,/host/cache"},
		"another name with that beginning":  {"/database /data.old /data-2 /data_3 /datä", "/database /data.old /data-2 /data_3 /datä"},
		"inside another path":               {"/mnt/data x/data //data", "/mnt/data x/data //data"},
		"a URL":                             {"http://data/x", "http://data/x"},
		"a path of the cache's neighbour":   {"/data/cache2", "/data/host/cache2"},
		"nothing":                           {"", ""},
		"no path at all":                    {"a=1 é", "a=1 é"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mapText(c.in, mounts); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzMapTextOnlyTouchesPaths(f *testing.F) {
	f.Add("cat /data/x")
	f.Add("/data")
	mounts := []Mount{{MountPath: "/data", HostPath: "/data"}}
	f.Fuzz(func(t *testing.T, text string) {
		if got := mapText(text, mounts); got != text {
			t.Errorf("mapping a path to itself made %q of %q", got, text)
		}
	})
}
