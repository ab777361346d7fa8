//go:build linux

package sandbox

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// toolCache is set when the tests are run once more as another user: compiling a standard library twice is no test.
var toolCache = flag.String("toolcache", "", "a private cache that an earlier run of TestTools has filled")

// nobody is a user and group that own nothing, on every system.
const nobody = 65534

// realTools are programs as people use them, each in a way that a sandbox could well break. The line must end with
// status 0 and its output must have every one of the words in it.
var realTools = []struct {
	name, program string
	may           bool // the program may be missing from a machine
	files         map[string]string
	prepare       func(*testing.T, *Box)
	line          string
	want          []string
}{
	{name: "go", program: "go", files: map[string]string{"x_test.go": goTest}, prepare: goModule,
		line: "go mod tidy && go test -v . && go build -o prog ./cmd && ./prog && go run ./cmd",
		want: []string{"served: hello, [split as words]", "\nok ", "ran\nran\n"}},
	{name: "go offline", program: "go", files: map[string]string{"go.mod": "module example.org/m\n"},
		line: "! go get example.org/nothing", want: []string{"module lookup disabled by GOPROXY=off"}},
	{name: "git", program: "git", prepare: gitRepository,
		line: "echo more >> file && git status --short && git diff --stat && git log --oneline && git blame -s file && git grep -n line && ! git commit -qam second",
		want: []string{" M file\n", "1 insertion(+)", " first\n", "file:1:line", "Read-only file system"}},
	{name: "gcc", program: "gcc", files: map[string]string{"main.c": cProgram},
		line: "gcc -O1 -pthread -o main main.c && ./main", want: []string{"sum 4950\n"}},
	{name: "make", program: "make", files: map[string]string{"Makefile": makefile},
		line: "make -s -j4 && make -s -j4 && cat all", want: []string{"made a\n", "a b c\n"}},
	{name: "python", program: "python3", files: map[string]string{"main.py": pythonProgram},
		line: "python3 main.py", want: []string{"squares 285\n", "mode wal\n", "rows 100\n", "served 3\n"}},
	{name: "python venv", program: "python3",
		line: "python3 -m venv --without-pip env && . env/bin/activate && python -c 'import sys; print(sys.prefix != sys.base_prefix)'", want: []string{"True\n"}},
	{name: "node", program: "node", files: map[string]string{"main.js": nodeProgram},
		line: "node main.js", want: []string{"served hello\n", "worker 42\n", "child 3\n"}},
	{name: "tar", program: "tar",
		line: "mkdir -p d/e && echo text > d/e/f && chmod 751 d/e/f && ln -s f d/e/l && tar czf d.tgz d && rm -r d && tar xzf d.tgz && stat -c %a d/e/f && cat d/e/l",
		want: []string{"751\ntext\n"}},
	{name: "perl", program: "perl",
		line: `perl -e 'pipe(R, W); if (!fork) { print W "from the child\n"; exit } wait; close W; print <R>'`, want: []string{"from the child\n"}},
	{name: "npm", program: "npm", may: true, files: map[string]string{"p/package.json": `{"name":"p","version":"1.0.0"}`, "p/index.js": "module.exports = 'installed'"},
		line: "npm pack --silent ./p && npm install --silent ./p-1.0.0.tgz && node -p \"require('p')\" && ! npm install --silent nothing-of-this-name",
		want: []string{"installed\n"}},
	{name: "cargo", program: "cargo", may: true, files: map[string]string{"Cargo.toml": "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"src/main.rs": "fn main() { println!(\"built\"); }\n#[test]\nfn t() {}\n"},
		line: "cargo build -q && target/debug/c && cargo test", want: []string{"built\n", "1 passed"}},
}

// TestTools: what people build and test with works inside the default profile, as the user of the tests and, if that is
// root, once more as one without any rights.
func TestTools(t *testing.T) {
	cache := *toolCache
	if cache == "" {
		cache = t.TempDir()
	}
	for _, tt := range realTools {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.program); err != nil {
				if !tt.may && *toolCache == "" {
					t.Fatalf("%s is missing, and this test is of no use without it", tt.program)
				}
				t.Logf("%s is missing here (for this user): not tried", tt.program)
				return
			}
			b := newBox(t, Policy{Cache: cache, Timeout: 10 * time.Minute}) // a standard library is compiled, maybe on a busy machine
			for name, text := range tt.files {
				write(t, filepath.Join(b.Policy().Root, name), text)
			}
			if tt.prepare != nil {
				tt.prepare(t, b)
				b = newBox(t, b.Policy()) // a repository, for one, is protected as a whole from the start
			}
			o := shell(t, b, tt.line)
			if o.Status != 0 {
				t.Errorf("status %d", o.Status)
			}
			for _, want := range tt.want {
				if !strings.Contains(o.Output, want) {
					t.Errorf("%q is not in the output", want)
				}
			}
			if t.Failed() {
				t.Log(o.Output)
			}
		})
	}
	if os.Geteuid() == 0 && !t.Failed() {
		t.Run("unprivileged", func(t *testing.T) { toolsAsNobody(t, cache) })
	}
}

// toolsAsNobody runs the same tests as a user without any rights, in a home directory of its own.
func toolsAsNobody(t *testing.T, cache string) {
	home, err := os.MkdirTemp("", "tools") // not t.TempDir: its parent is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	self := filepath.Join(home, "self")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, exe, self)
	moved := filepath.Join(home, "cache")
	if err := os.Rename(cache, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cache, 0o700); err != nil { // for the clean-up of its owner
		t.Fatal(err)
	}
	copyModule(t, hostModules(t, newBox(t, Policy{Profile: Off})), filepath.Join(home, modCache))
	giveTo(t, home, nobody)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestTools$", "-test.v", "-toolcache="+moved)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH") + ":/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	for _, name := range []string{"git", "gcc", "make", "python", "tar", "perl"} {
		if !strings.Contains(string(out), "--- PASS: TestTools/"+name+" ") {
			t.Errorf("%s did not pass", name)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, "not tried") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// giveTo makes a user the owner of a folder and of all that lies in it.
func giveTo(t *testing.T, dir string, uid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dependency is a module that this one depends on, so its source is in the module cache of whoever runs the tests.
const dependency = "github.com/mattn/go-shellwords"

// hostModules returns the module cache that a box shows.
func hostModules(t *testing.T, b *Box) string {
	t.Helper()
	for _, f := range b.host.Tools {
		if strings.HasSuffix(f.At, "/"+modCache) {
			return f.From
		}
	}
	t.Fatal("there is no module cache")
	return ""
}

// copyModule copies the dependency from one module cache to another.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	for _, dir := range []string{filepath.Join("cache/download", dependency), dependency + "@v" + cachedVersion(t, from)} {
		if err := os.CopyFS(filepath.Join(to, dir), os.DirFS(filepath.Join(from, dir))); err != nil {
			t.Fatal(err)
		}
	}
}

// cachedVersion returns the newest version of the dependency in a module cache, without its "v".
func cachedVersion(t *testing.T, cache string) string {
	t.Helper()
	zips, err := filepath.Glob(filepath.Join(cache, "cache/download", dependency, "@v/v*.zip"))
	if err != nil || len(zips) == 0 {
		t.Fatalf("%s is not in %s (%v)", dependency, cache, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(zips[len(zips)-1]), "v"), ".zip")
}

// goModule writes a module with the dependency and without any checksum: those come from the cache, as from a proxy.
func goModule(t *testing.T, b *Box) {
	root := b.Policy().Root
	write(t, filepath.Join(root, "go.mod"), "module example.org/m\n\ngo 1.21\n\nrequire "+dependency+" v"+cachedVersion(t, hostModules(t, b))+"\n")
	write(t, filepath.Join(root, "cmd/main.go"), "package main\n\nfunc main() { println(\"ran\") }\n")
}

// gitRepository makes a repository with one commit.
func gitRepository(t *testing.T, b *Box) {
	root := b.Policy().Root
	write(t, filepath.Join(root, "file"), "line\n")
	for i, line := range []string{"init -q", "add file", "-c user.name=t -c user.email=t@example.org -c commit.gpgsign=false commit -q -m first"} {
		cmd := exec.Command("git", strings.Fields(line)...)
		cmd.Dir, cmd.Env = root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal("git "+strconv.Itoa(i), err, string(out))
		}
	}
}

// The programs. Each does what test suites do: servers and clients on the loopback, processes, pipes, locks.
const (
	goTest = `package m

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mattn/go-shellwords"
)

func TestServe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	r, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	words, err := shellwords.Parse("'split as' words")
	if err != nil || len(words) != 2 {
		t.Fatal(words, err)
	}
	t.Logf("served: %s, %v", body, words)
}
`
	cProgram = `#include <pthread.h>
#include <stdio.h>
static int sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *from) {
	for (int i = 0; i < 25; i++) {
		pthread_mutex_lock(&lock);
		sum += (int)(long)from + i;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}
int main(void) {
	pthread_t t[4];
	for (long i = 0; i < 4; i++) if (pthread_create(&t[i], NULL, add, (void *)(i * 25))) return 1;
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	printf("sum %d\n", sum);
}
`
	makefile = `all: a b c
	cat $^ | xargs echo > $@
a b c:
	echo $@ > $@
	echo made $@
`
	pythonProgram = `import http.server, multiprocessing, os, socket, sqlite3, tempfile, threading, urllib.request

def square(n):
    return n * n

def insert(path, start):
    db = sqlite3.connect(path, timeout=30)
    for i in range(start, start + 25):
        with db:
            db.execute("insert into t values (?)", (i,))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"3")
    def log_message(self, *args):
        pass

if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        print("squares", sum(pool.map(square, range(10))))
    path = os.path.join(os.getcwd(), "test.db")
    db = sqlite3.connect(path)
    print("mode", db.execute("pragma journal_mode=wal").fetchone()[0])
    db.execute("create table t (n)")
    writers = [multiprocessing.Process(target=insert, args=(path, 25 * i)) for i in range(4)]
    [w.start() for w in writers]
    [w.join() for w in writers]
    print("rows", db.execute("select count(distinct n) from t").fetchone()[0])
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("served", urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port).read().decode())
    with tempfile.TemporaryDirectory() as d, socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(d, "s"))
        s.listen()
`
	nodeProgram = `const http = require('http'), { Worker, isMainThread, parentPort } = require('worker_threads'), { spawnSync } = require('child_process')
if (!isMainThread) {
  parentPort.postMessage(42)
} else {
  const server = http.createServer((_, res) => res.end('hello')).listen(0, '127.0.0.1', () => {
    http.get({ port: server.address().port, host: '127.0.0.1' }, res => {
      res.on('data', d => console.log('served ' + d)).on('end', () => server.close())
    })
  })
  new Worker(__filename).on('message', n => console.log('worker ' + n))
  console.log('child ' + spawnSync('sh', ['-c', 'exit 3']).status)
}
`
)
