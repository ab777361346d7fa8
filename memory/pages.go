package memory

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"time"
)

// A pageFile is a database file, with its write-ahead log, read page by page
// (sqlite.org/fileformat2.html). It finds events wherever they are, whatever
// has become of the tree that pointed at them: the hash of an event tells it
// from everything else.
type pageFile struct {
	db, wal *os.File // wal is nil if there is none
	size    int      // of a page
	pages   uint32   // in db
	newest  map[uint32]int64
	frames  []int64 // where pages begin in wal
}

// usualPage is SQLite's page size if nobody asks for another, as tether never
// does: for a file whose header is gone.
const usualPage = 4096

// openPages opens the copies of a database and of its write-ahead log.
func openPages(path string) (*pageFile, error) {
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &pageFile{db: db, size: usualPage, newest: map[uint32]int64{}}
	info, err := db.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	head := make([]byte, 100)
	if n, _ := db.ReadAt(head, 0); n == len(head) && string(head[:15]) == "SQLite format 3" {
		if n := int(binary.BigEndian.Uint16(head[16:])); n >= 512 && n&(n-1) == 0 {
			f.size = n
		}
	}
	f.pages = uint32(min(info.Size()/int64(f.size), math.MaxUint32))
	f.wal, err = os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.listFrames()
	return f, nil
}

// Close closes the files.
func (f *pageFile) Close() error {
	if f.wal != nil {
		return errors.Join(f.db.Close(), f.wal.Close())
	}
	return f.db.Close()
}

// listFrames finds the pages in the write-ahead log: those with the salt of its
// header. Their checksums do not matter, an event has its own.
func (f *pageFile) listFrames() {
	head := make([]byte, 32)
	if _, err := f.wal.ReadAt(head, 0); err != nil || binary.BigEndian.Uint32(head)&^1 != 0x377f0682 {
		return
	}
	step := int64(24 + f.size)
	frame := make([]byte, 24)
	for at := int64(32); ; at += step {
		if _, err := f.wal.ReadAt(frame, at); err != nil {
			return
		}
		if string(frame[8:16]) != string(head[16:24]) {
			continue
		}
		f.newest[binary.BigEndian.Uint32(frame)] = at + 24
		f.frames = append(f.frames, at+24)
	}
}

// page reads a page by its number: its newest version, or the one in the
// database file.
func (f *pageFile) page(n uint32, newest bool) []byte {
	at, ok := f.newest[n]
	if ok && newest {
		return f.read(place{wal: true, at: at})
	}
	if n < 1 || n > f.pages {
		return nil
	}
	return f.read(place{at: int64(n-1) * int64(f.size)})
}

// A place is where something begins in one of the two files.
type place struct {
	wal  bool
	at   int64 // of the page
	cell int   // within the page
}

// read reads the page at a place; nil if it cannot be read.
func (f *pageFile) read(p place) []byte {
	from := f.db
	if p.wal {
		from = f.wal
	}
	buf := make([]byte, f.size)
	if n, err := from.ReadAt(buf, p.at); n < f.size || err != nil && err != io.EOF {
		return nil
	}
	return buf
}

// events finds the places of all sound events, by their numbers. Of several
// versions the last one written counts.
func (f *pageFile) events() map[int64]place {
	found := map[int64]place{}
	look := func(p place) {
		page := f.read(p)
		for _, cell := range leafCells(page) {
			p.cell = cell
			if e, ok := f.event(page, cell); ok {
				found[e.Seq] = p
			}
		}
	}
	for n := int64(1); n < int64(f.pages); n++ { // the first has no events
		look(place{at: n * int64(f.size)})
	}
	for _, at := range f.frames {
		look(place{wal: true, at: at})
	}
	return found
}

// at reads the event at a place that events has found.
func (f *pageFile) at(p place) (Event, bool) { return f.event(f.read(p), p.cell) }

// leafCells are the offsets of the cells of a page of a table; none for other
// pages.
func leafCells(page []byte) []int {
	if len(page) < 8 || page[0] != 0x0d {
		return nil
	}
	var all []int
	n := int(binary.BigEndian.Uint16(page[3:]))
	for i := 0; i < n && 8+2*i+2 <= len(page); i++ {
		if at := int(binary.BigEndian.Uint16(page[8+2*i:])); at < len(page) {
			all = append(all, at)
		}
	}
	return all
}

// event reads the cell at page[at:] as an event. It is one only if its hash is
// right.
func (f *pageFile) event(page []byte, at int) (Event, bool) {
	if page == nil {
		return Event{}, false
	}
	for _, newest := range []bool{true, false} {
		if e, ok := decodeEvent(f.payload(page, at, newest)); ok {
			return e, true
		}
		if len(f.newest) == 0 {
			break
		}
	}
	return Event{}, false
}

// payload is the row number and the record of a cell, of which the end may lie
// on pages of its own.
func (f *pageFile) payload(page []byte, at int, newest bool) (row int64, record []byte) {
	size, n := varint(page[at:])
	row, m := varint(page[at+n:])
	at += n + m
	if n == 0 || m == 0 || size < 8 || size > maxBody+4096 {
		return 0, nil
	}
	local := localBytes(int(size), f.size)
	if at+local > len(page) {
		return 0, nil
	}
	record = append(make([]byte, 0, size), page[at:at+local]...)
	if len(record) == int(size) {
		return row, record
	}
	if at+local+4 > len(page) {
		return 0, nil
	}
	next := binary.BigEndian.Uint32(page[at+local:])
	for len(record) < int(size) { // each turn adds a page, or ends
		over := f.page(next, newest)
		if over == nil {
			return 0, nil
		}
		record = append(record, over[4:min(len(over), 4+int(size)-len(record))]...)
		next = binary.BigEndian.Uint32(over)
	}
	return row, record
}

// localBytes is how much of a record stands on a leaf page itself (fileformat2,
// section 1.6).
func localBytes(size, page int) int {
	if size <= page-35 {
		return size
	}
	least := (page-12)*32/255 - 23
	if k := least + (size-least)%(page-4); k <= page-35 {
		return k
	}
	return least
}

// decodeEvent reads a record of table event: a header with the type of each of
// the seven columns, then their values.
func decodeEvent(seq int64, record []byte) (e Event, ok bool) {
	head, n := varint(record)
	if n == 0 || head < 8 || head > int64(len(record)) {
		return e, false
	}
	types, values := record[n:head], record[head:]
	var columns [7][]byte
	var kinds [7]int64
	for i := range columns {
		kind, n := varint(types)
		size := columnSize(kind)
		if n == 0 || size < 0 || size > int64(len(values)) {
			return e, false
		}
		kinds[i], columns[i] = kind, values[:size]
		types, values = types[n:], values[size:]
	}
	if len(types) != 0 || len(columns[6]) != 32 || kinds[0] != 0 {
		return e, false
	}
	at := int64(0)
	for _, b := range columns[3] { // SQLite stores a time in ns as 8 bytes, and would a small number in fewer
		at = at<<8 | int64(b)
	}
	e = Event{Seq: seq, Session: string(columns[1]), Kind: string(columns[2]), At: time.Unix(0, at).UTC(), Body: columns[4]}
	return e, string(e.sum(columns[5])) == string(columns[6])
}

// columnSize is how many bytes a value of that serial type takes (fileformat2,
// section 2.1); -1 if there is no such type.
func columnSize(kind int64) int64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind < 0, kind == 10, kind == 11:
		return -1
	}
	return [...]int64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[kind]
}

// varint reads SQLite's variable-length integer; n is 0 if b ends too early.
func varint(b []byte) (v int64, n int) {
	for i := 0; i < 9 && i < len(b); i++ {
		if i == 8 {
			return v<<8 | int64(b[i]), 9
		}
		v = v<<7 | int64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
