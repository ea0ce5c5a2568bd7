#pragma once

#include <cstdint>

#include "fjord/common/traffic.h"

/// The formulas of [VDS 2007], one function each; those of the traffic of puts are in common/traffic.h. Unless a
/// comment says otherwise, a result is a mean over buckets and nodes that are equally full, as in the thesis. Sizes are
/// in bytes, rates in bytes per second. All functions are pure; senseless arguments (no bucket, a size of 0) are a bug
/// of the caller.
namespace fjord::tuner::seed {

/// Sizes of a slotfile's header and of an entry of its metadata list [VDS 2007, E.1.2].
inline constexpr double kSlotfileHeaderBytes = 20;
inline constexpr double kMetadataEntryBytes = 40;
/// More slotfiles than this in one bucket slow down puts and visits [VDS 2007, 5.3.3].
inline constexpr std::uint64_t kSlotfilesMax = 64;
/// More data than this in one bucket makes puts time out [VDS 2007, 6.1.1].
inline constexpr double kBucketBytesMax = 64.0 * 1024 * 1024;
/// A good size for output documents of jobs, which is between 1 and 8 MB [VDS 2007, 6.1.2].
inline constexpr double kOutputDocumentBytes = 4.0 * 1024 * 1024;

/// Returns the minimum number of documents that a job stores, n * m: one for each pair of input and output bucket
/// [VDS 2007, 4.3.3].
double output_documents_min(double input_buckets, double output_buckets);

/// Returns the memory of one bucket's tuples, M = |D| / |B| * s [VDS 2007, 4.3.4].
double tuple_memory_per_bucket(double documents, double buckets, double tuple_bytes_per_document);

/// Returns max(ceil(|D| / (entries * slotfiles)), ceil(s_D / (slotfile size * slotfiles))) [VDS 2007, 5.4.2].
std::uint64_t buckets_min(double documents, double total_bytes, double entries_max, double slotfile_bytes_max,
                          double slotfiles_max);

/// Returns the maximum number of buckets, entries * slotfiles: each input bucket puts a document into each output
/// bucket, so there must not be more buckets than documents that fit in one bucket [VDS 2007, 5.4.2].
std::uint64_t buckets_max_for_jobs(double entries_max, double slotfiles_max);

/// Returns the mean size of a bucket, b = d * |D| / |B| [VDS 2007, 5.5].
double bucket_bytes_mean(double documents, double document_bytes, double buckets);

/// Returns 2^ceil(log2(bucket_bytes / slotfile_bytes_max)), at least 1 [VDS 2007, 5.5].
std::uint64_t slotfiles_per_bucket(double bucket_bytes, double slotfile_bytes_max);
/// Returns twice slotfiles_per_bucket(), which leaves a margin of one split.
std::uint64_t slotfiles_per_bucket_with_margin(double bucket_bytes, double slotfile_bytes_max);

/// Returns ceil(output size / (maximum bucket size - data already in buckets)), at least 1; 0 if no bucket has room
/// [VDS 2007, 6.2.1].
std::uint64_t output_buckets_min(double output_bytes, double bucket_bytes_max, double bucket_bytes_now);

/// Returns ceil(2.5 * c_max), where c_max is the number of CPUs of the node that has the most [VDS 2007, 6.3.2].
std::uint64_t visitor_threads_cpu(std::uint64_t cpus_max);
/// Returns floor(m_node * |B| / (|D| * s)), where m_node is the memory for tuples of the node that has the least
/// [VDS 2007, 6.3.2].
std::uint64_t visitor_threads_memory(double node_memory_bytes, double buckets, double documents,
                                     double tuple_bytes_per_document);

/// Returns the column "Expected" of [VDS 2007, table 6.1], which counts the overhead of frames n + 2 times; the formula
/// of the thesis counts it n + 1 times.
double put_traffic_of_table(double replicas, double document_bytes, double header_bytes = traffic::kMessageHeaderBytes);
/// Largest ratio of measured traffic to the traffic in [VDS 2007, table 6.1]. The thesis asks for "some margin".
inline constexpr double kTrafficMargin = 1.165;

/// Returns the memory of a put on a storage node, d + h + n * e: document, header of the slotfile, and n entries of e
/// bytes in its metadata list [VDS 2007, E.1.2].
double put_memory(double document_bytes, double entries);
/// Returns the traffic of a remove, (2c + 2) * m, for c replicas and messages of m bytes [VDS 2007, E.2.1].
double remove_traffic(double replicas, double header_bytes = traffic::kMessageHeaderBytes);
/// Returns the memory of a remove on a storage node, h + n * e as for a put [VDS 2007, E.2.3]. (The thesis prints "h +
/// m * e", but its m is the message header; the text describes the metadata list.)
double remove_memory(double entries);
/// Returns the traffic of a get, 4m + 2d, for message headers of m and a document of d bytes [VDS 2007, E.3.1].
double get_traffic(double document_bytes, double header_bytes = traffic::kMessageHeaderBytes);
/// Returns the memory of a get on a storage node, which is that of a put: d + h + n * e [VDS 2007, E.3.3].
double get_memory(double document_bytes, double entries);

/// Returns the number of docblocks of a visit, ceil(|D| * d / b) [VDS 2007, E.4.1].
std::uint64_t docblocks(double documents, double document_bytes, double docblock_bytes);
struct VisitTraffic {
  double distributors = 0;
  double storage_nodes = 0;
  double documents = 0;
  double document_bytes = 0;
  double docblock_bytes = 0;
  double bucket_nodes_reply_bytes = 0;  ///< Beta of [VDS 2007]
  double create_visitor_bytes = 0;      ///< v of [VDS 2007]
  double header_bytes = traffic::kMessageHeaderBytes;
};
/// Returns a visit's traffic, (|Psi| + |S|) * 2m + |Psi| * beta + |S| * v + ceil(|D| * d / b) * b [VDS 2007, E.4.1].
double visit_traffic(const VisitTraffic& visit);
/// Returns the number of docblocks of one slotfile, ceil(maxfilesize / docblock size) [VDS 2007, E.4.2].
std::uint64_t docblocks_per_slotfile(double slotfile_bytes_max, double docblock_bytes);
/// Returns the number of disk reads of a visit: one to list each slotfile, two with a selection, and three for each
/// docblock [VDS 2007, E.4.2].
double visit_reads(double slotfiles, double docblocks, bool with_selection);
struct VisitMemory {
  double buckets = 0;
  double storage_nodes = 0;
  double remaining_entry_bytes = 0;  ///< r of [VDS 2007]
  double disks = 0;                  ///< h of [VDS 2007]
  double threads_per_disk = 0;       ///< t of [VDS 2007]
  double docblock_bytes = 0;         ///< d of [VDS 2007]
  double documents = 0;
  double buckets_at_once = 0;      ///< a of [VDS 2007]
  double pending_entry_bytes = 0;  ///< p of [VDS 2007]
};
/// Returns a visit's memory on a node, ceil(|B| / |S|) * r + h * t * d + ceil(|D| / |B|) * a * p [VDS 2007, E.4.3].
double visit_memory(const VisitMemory& visit);

}  // namespace fjord::tuner::seed
