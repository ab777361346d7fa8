package main

import (
	"fmt"
	"net/url"
	"slices"

	"tether/act"
	"tether/sandbox"
)

// checkWeb refuses an address of a search server that none can have.
func (c Config) checkWeb() error {
	u, err := url.Parse(c.Web.Search)
	if c.Web.Search != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "") {
		return fmt.Errorf("web.search is %q; it takes the address of a SearXNG server, such as http://127.0.0.1:8888", c.Web.Search)
	}
	return nil
}

// withoutWeb takes web out of the commands and the names where commands reach
// nothing: there it does not exist.
func (c Config) withoutWeb(all []*act.Command, names []string) ([]*act.Command, []string) {
	if n := sandbox.Network(c.network()); n == sandbox.NetProxy || n == sandbox.NetHost {
		return all, names
	}
	isWeb := func(name string) bool { return name == "web" }
	all = slices.DeleteFunc(slices.Clone(all), func(cmd *act.Command) bool { return isWeb(cmd.Name) })
	return all, slices.DeleteFunc(slices.Clone(names), isWeb)
}

// web is what the command of that name reaches, nil where commands reach nothing.
func (w *workplace) web() *act.Web {
	way := w.Box.Way()
	if way == nil {
		return nil
	}
	return &act.Web{Dial: way.Dial, Search: w.Config.Web.Search}
}
