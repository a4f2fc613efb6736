package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by -ldflags "-X main.version=…"; what they leave out comes from the build
// information of the binary.
var version, commit, date string

func newVersion(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and date", Example: "  unbroken version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(env.out, "unbroken", versionLine(debug.ReadBuildInfo()))
			return nil
		},
	}
}

// shortVersion is the version alone.
func shortVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version == "" && ok {
		return info.Main.Version
	}
	return cmp.Or(version, "(devel)")
}

// versionLine describes the build as far as it is known.
func versionLine(info *debug.BuildInfo, ok bool) string {
	v, c, d, dirty := version, commit, date, ""
	if ok {
		v = cmp.Or(v, info.Main.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c = cmp.Or(c, s.Value)
			case "vcs.time":
				d = cmp.Or(d, s.Value)
			case "vcs.modified":
				if s.Value == "true" {
					dirty = ", modified"
				}
			}
		}
	}
	return fmt.Sprintf("%s (commit %s, %s%s, %s %s/%s)", cmp.Or(v, "(devel)"), cmp.Or(c, "unknown"),
		cmp.Or(d, "date unknown"), dirty, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
