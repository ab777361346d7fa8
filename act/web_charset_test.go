package act

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

// TestCharsets: each table is that of golang.org/x/text, byte for byte.
func TestCharsets(t *testing.T) {
	oracle := map[string]*charmap.Charmap{
		"windows1250": charmap.Windows1250, "windows1251": charmap.Windows1251, "windows1252": charmap.Windows1252,
		"windows1253": charmap.Windows1253, "windows1254": charmap.Windows1254, "windows1255": charmap.Windows1255,
		"windows1256": charmap.Windows1256, "windows1257": charmap.Windows1257, "windows1258": charmap.Windows1258,
		"iso88592": charmap.ISO8859_2, "iso88595": charmap.ISO8859_5, "iso88597": charmap.ISO8859_7, "iso88598": charmap.ISO8859_8,
		"iso885915": charmap.ISO8859_15, "koi8r": charmap.KOI8R, "koi8u": charmap.KOI8U, "ibm866": charmap.CodePage866,
		"iso88591": charmap.Windows1252, "latin1": charmap.Windows1252, "usascii": charmap.Windows1252, "ascii": charmap.Windows1252,
		"iso88599": charmap.Windows1254, "cp1251": charmap.Windows1251, "cp1252": charmap.Windows1252,
	}
	if len(upper) != len(oracle) {
		t.Errorf("there are %d labels and this test knows %d", len(upper), len(oracle))
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for label, m := range oracle {
		var want strings.Builder
		for _, c := range all {
			want.WriteRune(m.DecodeByte(c))
		}
		if got := decoded(all, "text/html; charset="+label); got != want.String() {
			t.Errorf("%s is read as\n%q\nwant\n%q", label, got, want.String())
		}
	}
}
