// Which topics a back end keeps, as one writes it in plain C++: B3M by deltas, and F-B3M by deltas and lazily.
//
//   offloading_reference FOLDER b3m|fb3m-delta|fb3m-lazy ratio|gain
//
// reads the arrays indptr (int64), indices (int32, interests by subscriber), rate (int64), cost (double) and threshold (int64, one for each
// subscriber) from files of these names in FOLDER, and `capacity` (one double); writes the picks in their order to `picks` (int32), and
// prints how many they are, what they cost, what they are worth, and the CPU time (s) from arrays to picks. Scores are whole numbers and
// ties go to the lowest topic. It shares nothing with the project but the definitions.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using Int = std::int64_t;
using Id = std::int32_t;

template <class T>
std::vector<T> read(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (!file) std::perror(path.c_str()), std::exit(2);
    std::fseek(file, 0, SEEK_END);
    std::vector<T> values(std::ftell(file) / sizeof(T));
    std::rewind(file);
    if (std::fread(values.data(), sizeof(T), values.size(), file) != values.size()) std::perror(path.c_str()), std::exit(2);
    std::fclose(file);
    return values;
}

struct Lists {  // list i is items[start[i]] to items[start[i + 1] - 1]
    std::vector<Int> start;
    std::vector<Id> items;
    Int size() const { return static_cast<Int>(start.size()) - 1; }
};

// For each item, in the order of the lists that are visited, the lists that it is in.
Lists transposed(const Lists& lists, Int items, const std::vector<Id>& order) {
    Lists result{std::vector<Int>(items + 1, 0), std::vector<Id>(lists.items.size())};
    for (Id item : lists.items) ++result.start[item + 1];
    std::partial_sum(result.start.begin(), result.start.end(), result.start.begin());
    std::vector<Int> next(result.start.begin(), result.start.end() - 1);
    for (Id list : order)
        for (Int i = lists.start[list]; i < lists.start[list + 1]; ++i) result.items[next[lists.items[i]]++] = list;
    return result;
}

std::vector<Id> counted(Int n) {
    std::vector<Id> order(n);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

struct Problem {
    Lists topics_of, subscribers_of;
    std::vector<Int> rate;
    std::vector<double> cost;
    std::vector<Int> need;
    double capacity;
    bool by_ratio;

    Int topics() const { return static_cast<Int>(rate.size()); }
    Int most_subscribers() const {
        Int most = 1;
        for (Int t = 0; t < topics(); ++t) most = std::max(most, subscribers_of.start[t + 1] - subscribers_of.start[t]);
        return most;
    }
    // The one division of a score.
    double key(Id topic, Int score) const { return by_ratio ? static_cast<double>(score) / cost[topic] : static_cast<double>(score); }
};

struct Picks {
    std::vector<Id> topics;
    double spent = 0;
};

// Topics by key, the highest first and the lowest topic among equals; four children each; `place` is kept where keys rise, too.
class Heap {
  public:
    Heap(const Problem& problem, const std::vector<Int>& score) : place(problem.topics(), -1) {
        for (Id topic = 0; topic < problem.topics(); ++topic)
            if (score[topic] > 0 && problem.cost[topic] > 0) entries.push_back({problem.key(topic, score[topic]), topic});
        for (std::size_t i = 0; i < entries.size(); ++i) place[entries[i].topic] = static_cast<Id>(i);
        for (std::size_t i = entries.size(); i-- > 0;) down(i);
    }
    bool empty() const { return entries.empty(); }
    Id topic() const { return entries[0].topic; }
    double key() const { return entries[0].key; }
    void lower(double key) { entries[0].key = key, down(0); }
    void raise(Id topic, double key) { entries[place[topic]].key = key, up(place[topic]); }
    void pop() {
        entries[0] = entries.back();
        entries.pop_back();
        if (!entries.empty()) down(0);
    }

  private:
    struct Entry {
        double key;
        Id topic;
        bool before(const Entry& other) const { return key > other.key || (key == other.key && topic < other.topic); }
    };
    std::vector<Entry> entries;
    std::vector<Id> place;

    void put(std::size_t i, const Entry& entry) { entries[i] = entry, place[entry.topic] = static_cast<Id>(i); }
    void down(std::size_t i) {
        const Entry entry = entries[i];
        for (std::size_t child; (child = 4 * i + 1) < entries.size();) {
            std::size_t best = child;
            for (std::size_t other = child + 1; other < std::min(child + 4, entries.size()); ++other)
                if (entries[other].before(entries[best])) best = other;
            if (!entries[best].before(entry)) break;
            put(i, entries[best]), i = best;
        }
        put(i, entry);
    }
    void up(std::size_t i) {
        const Entry entry = entries[i];
        for (std::size_t parent; i > 0 && entry.before(entries[parent = (i - 1) / 4]); i = parent) put(i, entries[parent]);
        put(i, entry);
    }
};

// GreedyB3M (algorithm 2). A subscriber's topics stand by rate; keys in the heap are upper bounds of the scores.
Picks b3m(const Problem& given) {
    std::vector<Id> by_rate = counted(given.topics());
    std::stable_sort(by_rate.begin(), by_rate.end(), [&](Id a, Id b) { return given.rate[a] < given.rate[b]; });
    const Lists rows = transposed(given.subscribers_of, given.topics_of.size(), by_rate);
    const std::vector<Int>& rate = given.rate;
    // As few bits as suffice: sums of up to 53 are divided exactly.
    const Int most_needed = given.need.empty() ? 0 : *std::max_element(given.need.begin(), given.need.end());
    const Int bits = std::min<Int>(62 - std::bit_width(static_cast<std::uint64_t>(given.most_subscribers())),
                                   std::max<Int>(40, std::bit_width(static_cast<std::uint64_t>(most_needed)) + 30));
    const Int one = Int{1} << bits;
    std::vector<Int> rest = given.need, score(given.topics(), 0);
    for (Int v = 0; v < rows.size(); ++v) {
        if (rest[v] <= 0) continue;
        const Int weight = one / rest[v];
        for (Int i = rows.start[v]; i < rows.start[v + 1]; ++i) {
            const Id u = rows.items[i];
            score[u] += rate[u] >= rest[v] ? one : rate[u] * weight;
        }
    }
    Heap heap(given, score);
    std::vector<Int> bound = score;
    Picks picks;
    while (!heap.empty()) {
        const Id topic = heap.topic();
        const double key = given.key(topic, score[topic]);
        const bool fits = picks.spent + given.cost[topic] <= given.capacity;
        if (fits && key < heap.key()) {
            bound[topic] = score[topic];
            heap.lower(key);
            continue;
        }
        if (fits && score[topic] == 0) break;
        bound[topic] = std::numeric_limits<Int>::max();
        heap.pop();
        if (!fits) continue;
        picks.topics.push_back(topic);
        picks.spent += given.cost[topic];
        for (Int j = given.subscribers_of.start[topic]; j < given.subscribers_of.start[topic + 1]; ++j) {
            const Id v = given.subscribers_of.items[j];
            const Int before = rest[v];
            if (before <= 0) continue;
            const Int after = std::max<Int>(0, before - rate[topic]);
            const Int weight_before = one / before, weight_after = after ? one / after : 0;
            rest[v] = after;
            for (Int i = rows.start[v]; i < rows.start[v + 1]; ++i) {
                const Id u = rows.items[i];
                if (after == 0) {
                    score[u] -= rate[u] >= before ? one : rate[u] * weight_before;
                    continue;
                }
                if (rate[u] >= before) break;
                score[u] += (rate[u] >= after ? one : rate[u] * weight_after) - rate[u] * weight_before;
                if (score[u] > bound[u]) {
                    bound[u] = score[u] + score[u] / 32;
                    heap.raise(u, given.key(u, bound[u]));
                }
            }
        }
    }
    return picks;
}

// What an event is worth to each subscriber: the same for all in sum where a common multiple of the needs is small enough.
std::vector<Int> weights(const Problem& given) {
    const Int limit = Int{1} << (62 - std::bit_width(static_cast<std::uint64_t>(given.most_subscribers())));
    Int common = 1;
    for (Int need : given.need) {
        if (need <= 0 || common % need == 0) continue;
        const Int factor = need / std::gcd(common, need);
        if (common > limit / factor) {
            common = limit;
            break;
        }
        common *= factor;
    }
    std::vector<Int> weight(given.need.size(), 0);
    for (std::size_t v = 0; v < weight.size(); ++v)
        if (given.need[v] > 0) weight[v] = common / given.need[v];
    return weight;
}

// GreedyFB3M (algorithm 5, without its slips). Gains never rise, so that an old one is an upper bound.
Picks fb3m(const Problem& given, bool by_deltas) {
    const std::vector<Int> weight = weights(given), &rate = given.rate;
    std::vector<Int> rest = given.need, gain(given.topics());
    const auto recomputed = [&](Id topic) {
        Int sum = 0;
        for (Int j = given.subscribers_of.start[topic]; j < given.subscribers_of.start[topic + 1]; ++j) {
            const Id v = given.subscribers_of.items[j];
            sum += std::min(rest[v], rate[topic]) * weight[v];
        }
        return sum;
    };
    for (Id topic = 0; topic < given.topics(); ++topic) gain[topic] = recomputed(topic);
    Heap heap(given, gain);
    std::vector<Int> stamp(by_deltas ? 0 : given.topics(), 0);
    Picks picks;
    while (!heap.empty()) {
        const Id topic = heap.topic();
        const Int picked = static_cast<Int>(picks.topics.size());
        const bool fits = picks.spent + given.cost[topic] <= given.capacity;
        if (fits && !by_deltas && stamp[topic] != picked) gain[topic] = recomputed(topic), stamp[topic] = picked;
        const double key = given.key(topic, gain[topic]);
        if (fits && key < heap.key()) {
            heap.lower(key);
            continue;
        }
        if (fits && gain[topic] == 0) break;
        heap.pop();
        if (!fits) continue;
        picks.topics.push_back(topic);
        picks.spent += given.cost[topic];
        for (Int j = given.subscribers_of.start[topic]; j < given.subscribers_of.start[topic + 1]; ++j) {
            const Id v = given.subscribers_of.items[j];
            const Int before = rest[v], after = std::max<Int>(0, before - rate[topic]);
            rest[v] = after;
            if (!by_deltas || before <= 0) continue;
            for (Int i = given.topics_of.start[v]; i < given.topics_of.start[v + 1]; ++i) {
                const Id u = given.topics_of.items[i];
                gain[u] -= (std::min(before, rate[u]) - std::min(after, rate[u])) * weight[v];
            }
        }
    }
    return picks;
}

int main(int count, char** arguments) {
    if (count != 4) return 2;
    const std::string folder = std::string(arguments[1]) + "/", algorithm = arguments[2];
    Problem given{{read<Int>(folder + "indptr"), read<Id>(folder + "indices")}, {}, read<Int>(folder + "rate"),
                  read<double>(folder + "cost"), read<Int>(folder + "threshold"), read<double>(folder + "capacity").at(0),
                  arguments[3] == std::string("ratio")};
    const std::clock_t begun = std::clock();
    for (Int v = 0; v < given.topics_of.size(); ++v) {
        Int all = 0;
        for (Int i = given.topics_of.start[v]; i < given.topics_of.start[v + 1]; ++i) all += given.rate[given.topics_of.items[i]];
        given.need[v] = std::min(given.need[v], all);
    }
    given.subscribers_of = transposed(given.topics_of, given.topics(), counted(given.topics_of.size()));
    const Picks picks = algorithm == "b3m" ? b3m(given) : fb3m(given, algorithm == "fb3m-delta");
    const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;

    std::vector<Int> rest = given.need;
    for (Id topic : picks.topics)
        for (Int j = given.subscribers_of.start[topic]; j < given.subscribers_of.start[topic + 1]; ++j)
            rest[given.subscribers_of.items[j]] -= given.rate[topic];
    Int satisfied = 0;
    long double satisfaction = 0;
    for (std::size_t v = 0; v < rest.size(); ++v) {
        if (given.need[v] <= 0) continue;
        satisfied += rest[v] <= 0;
        satisfaction += rest[v] <= 0 ? 1.0L : static_cast<long double>(given.need[v] - rest[v]) / given.need[v];
    }
    std::FILE* file = std::fopen((folder + "picks").c_str(), "wb");
    if (!file || std::fwrite(picks.topics.data(), sizeof(Id), picks.topics.size(), file) != picks.topics.size()) return 2;
    std::fclose(file);
    std::printf("%zu %.17g %lld %.17Lg %.3f\n", picks.topics.size(), picks.spent, static_cast<long long>(satisfied), satisfaction, seconds);
}
