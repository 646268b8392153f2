package compare

// aim is a line of the table of issue 3: figures whose ratio to etcd's is wanted.
type aim struct {
	what    string
	load    string
	clients []int
	of      func(figures) float64
	smaller bool // the smaller the better; memory is given as a share of etcd's all the same

	seconds  bool // not a ratio: in seconds
	own, api string
}

func perSecond(f figures) float64 { return f.PerSecond }
func p50(f figures) float64       { return f.P50.Seconds() }
func p99(f figures) float64       { return f.P99.Seconds() }
func value(f figures) float64     { return f.value }
func resident(f figures) float64  { return f.resident }
func anonymous(f figures) float64 { return f.anon }

// none is the number of clients of what has none.
var none = []int{0}

var aims = []aim{
	{what: "put 256 B, 1 client, p50", load: "put256", clients: []int{1}, of: p50, smaller: true, own: "2×", api: "1.3×"},
	{what: "puts/s of 256 B, 128 / 512 clients", load: "put256", clients: []int{128, 512}, of: perSecond, own: "5× / 8×", api: "2× / 2.4×"},
	{what: "puts/s of 1 KiB, 128 / 512 clients", load: "put1k", clients: []int{128, 512}, of: perSecond, own: "5× / 8×", api: "2× / 2.4×"},
	{what: "CAS/s, 128 / 512 clients", load: "cas", clients: []int{128, 512}, of: perSecond, own: "5× / 8×", api: "2× / 2.4×"},
	{what: "linearizable get/s, 1 / 128 clients", load: "get", clients: []int{1, 128}, of: perSecond, own: "4× / 7×", api: "1.4×"},
	{what: "serializable get/s, 1 / 128 clients", load: "sget", clients: []int{1, 128}, of: perSecond, own: "4× / 8×", api: "1.4×"},
	{what: "range of 500 keys/s, 1 / 16 / 128 clients", load: "range500", clients: []int{1, 16, 128}, of: perSecond, own: "4×", api: "1.2×"},
	{what: "100 watchers at 200 puts/s, put to event, p50", load: nameWatch, clients: none, of: p50, smaller: true, own: "2×", api: "1.3×"},
	{what: "the same, p99", load: nameWatch, clients: none, of: p99, smaller: true, own: "15×", api: "5×"},
	{what: "server CPU per put of 256 B, 128 clients", load: "put256", clients: []int{128}, of: figures.cpuPerCall, smaller: true, own: "5×", api: "2×"},
	{what: "leader kill -9 to next accepted write", load: nameFailOver, clients: none, of: value, seconds: true, own: "< 1 s", api: "< 1 s"},
	{what: "memory per member, 10,000 keys, idle: resident", load: "idle", clients: none, of: resident, own: "0.6×", api: "0.6×"},
	{what: "the same, anonymous", load: "idle", clients: none, of: anonymous, own: "0.6×", api: "0.6×"},
	{what: "memory per member, 512 clients put 256 B: resident", load: "put256", clients: []int{512}, of: resident, own: "1×", api: "1×"},
	{what: "the same, anonymous", load: "put256", clients: []int{512}, of: anonymous, own: "1×", api: "1×"},
}
