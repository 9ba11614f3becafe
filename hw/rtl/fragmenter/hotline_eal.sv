// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// The EAL (Embedding Access Logger): the set-associative directory of hot rows.
///
/// A request is a *slice*: up to `Lanes` lookups, one operation. Its result carries, for each lane,
/// whether the row id is pinned (below `pinned_rows_i`) or was found in the EAL, and its slot.
/// Results leave in the order of the requests and are those of sequential execution, lanes from 0
/// up, whatever the operations.
///
///   req --> pinned? --> hotline_feistel --> FIFO --> [slice] --> [group] --> banks --> merge --+
///    |                                               lanes that share a bank go in             |
///    |                                               several groups                            v
///    +--> FIFO of ids, masks, counters, user --------------------------------------> slots --> res
///
/// The set of an id is in bank `set mod Banks`. Lanes of a FRAGMENT slice that look up the same id
/// share the lookup of the lowest one. The slice at the arbitration stage sends its lanes
/// out in groups that each bank can take at once: two reads (FRAGMENT), or one update (the others);
/// lower lanes first. A group is complete when all its lookups have fired in their banks, an update
/// not while an update of the same set is in flight; the next group waits for that. A slice is
/// merged from its groups. FRAGMENT after updates waits until these are written.
///
/// What is accepted has room: `SlicesInFlight` bounds the slices inside, every FIFO holds as many,
/// and nothing behind the arbitration can stop. Backpressure on `res_*` therefore loses nothing.
///
/// CLEAR and DUMP begin when no slice is inside (of both, DUMP first); slices accepted while they
/// run wait before the arbitration. After reset the banks are swept as by CLEAR.
///
///   dump_valid_i && dump_ready_o : then ent_*, an entry a transfer, ..., the last with `last`;
///                                  `last` and `void` together: no entry, only the end
///
/// Throughput  FRAGMENT: 1 slice per cycle without bank conflicts; else the largest number of
///             its distinct ids in one bank / 2, in cycles. LEARN, LOAD, EVICT: the largest number
///             of lookups in one bank, and up to 4 cycles more for each lookup of a set that was
///             updated in the last 4 cycles. All ids different and in one set: FRAGMENT 2 lookups
///             per cycle; all lookups in one set: LEARN 1 in 5 cycles. Measured with Criteo-shaped ids (Zipf 1.1, 31 % of lookups not pinned), 16
///             lanes, 32 banks: FRAGMENT 0.99 slices per cycle; LEARN 0.63 with 32,768 sets, 0.47
///             with 256. CLEAR: Sets / Banks + 2 cycles. DUMP: 1 cycle per entry and per empty
///             set; with one bank 3 more per set.
/// Latency     21 cycles from taking a slice to the cycle that offers its result, without stalls.
/// Stalls      `req_ready_o` is low while `SlicesInFlight` slices are inside, in reset and one
///             cycle beyond; it depends on no input of the same cycle.
/// Errors      None. An operation other than LEARN, LOAD, EVICT reads only.
/// Reset       Drops everything inside and empties the EAL; `idle_o` rises after the sweep.
module hotline_eal import hotline_pkg::*, hotline_eal_pkg::*; #(
  /// Lookups of a slice.
  parameter int unsigned Lanes = 2,
  /// Sets, a power of two.
  parameter int unsigned Sets = 16,
  /// Ways of a set, a power of two up to 16.
  parameter int unsigned Ways = 16,
  /// Banks that the sets are spread over, a power of two.
  parameter int unsigned Banks = 2,
  /// Bits that travel along with a slice.
  parameter int unsigned UserBits = 1,
  /// Slices inside, at most. Fewer than 24 cost throughput.
  parameter int unsigned SlicesInFlight = 32
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  /// Row ids below this are pinned. Stable while anything is in flight.
  input  logic [31:0]                       pinned_rows_i,

  /// Slices.
  input  logic                              req_valid_i,
  output logic                              req_ready_o,
  input  logic [7:0]                        req_operation_i,
  /// LEARN keeps frequent ids, not recent ones.
  input  logic                              req_frequency_i,
  /// Lanes that hold a lookup.
  input  logic [Lanes-1:0]                  req_mask_i,
  input  logic [Lanes-1:0][31:0]            req_ids_i,
  /// Counters for LOAD.
  input  logic [Lanes-1:0][CounterBits-1:0] req_counters_i,
  input  logic [UserBits-1:0]               req_user_i,

  /// Results, one per slice, in order.
  output logic                              res_valid_o,
  input  logic                              res_ready_i,
  output logic [UserBits-1:0]               res_user_o,
  output logic [Lanes-1:0]                  res_mask_o,
  output logic [Lanes-1:0][31:0]            res_ids_o,
  output logic [Lanes-1:0][CounterBits-1:0] res_counters_o,
  /// Below pinned_rows_i; 0 where the mask is 0, as the two that follow.
  output logic [Lanes-1:0]                  res_pinned_o,
  /// Found in the EAL before this lookup.
  output logic [Lanes-1:0]                  res_hit_o,
  /// LOAD: no way was free.
  output logic [Lanes-1:0]                  res_rejected_o,
  /// Slot where pinned or hit, else 0.
  output logic [Lanes-1:0][31:0]            res_slots_o,

  /// CLEAR: hold valid until ready, which comes when all sets are invalid.
  input  logic                              clear_valid_i,
  output logic                              clear_ready_o,

  /// DUMP: accepted when idle.
  input  logic                              dump_valid_i,
  output logic                              dump_ready_o,
  /// Its entries, in slot order.
  output logic                              ent_valid_o,
  input  logic                              ent_ready_i,
  output logic [31:0]                       ent_row_o,
  output logic [31:0]                       ent_slot_o,
  output logic [CounterBits-1:0]            ent_counter_o,
  output logic                              ent_last_o,
  /// With `last`: this is no entry.
  output logic                              ent_void_o,

  /// Nothing inside, and no sweep or DUMP running.
  output logic                              idle_o,
  /// A slice waits for a bank, or for an update of its set, in this cycle.
  output logic                              stat_stall_bank_o
);

  localparam int unsigned SetBits   = $clog2(Sets);
  localparam int unsigned WayBits   = $clog2(Ways);
  localparam int unsigned BankBits  = $clog2(Banks);
  localparam int unsigned TagBits   = 32 - SetBits;
  localparam int unsigned Depth     = Sets / Banks;
  // At least one bit each, for ports and indices.
  localparam int unsigned SetWidth  = Sets > 1 ? SetBits : 1;
  localparam int unsigned WayWidth  = Ways > 1 ? WayBits : 1;
  localparam int unsigned BankWidth = Banks > 1 ? BankBits : 1;
  localparam int unsigned RowWidth  = Depth > 1 ? $clog2(Depth) : 1;
  localparam int unsigned LaneWidth = Lanes > 1 ? $clog2(Lanes) : 1;

  if (Lanes < 1 || UserBits < 1 || SlicesInFlight < 2) begin : gen_bad_size
    $fatal(1, "%m: Lanes, UserBits must be at least 1, SlicesInFlight at least 2");
  end
  if (Sets != 1 << SetBits || Ways != 1 << WayBits || Banks != 1 << BankBits) begin : gen_bad_power
    $fatal(1, "%m: Sets, Ways and Banks must be powers of two");
  end
  if (Ways > 16 || Banks > Sets || SetBits + WayBits > 30) begin : gen_bad_shape
    $fatal(1, "%m: Ways <= 16, Banks <= Sets and Sets * Ways <= 2**30 are required");
  end

  typedef logic [SetWidth-1:0]  set_t;
  typedef logic [BankWidth-1:0] bank_t;
  typedef logic [RowWidth-1:0]  row_t;
  typedef logic [TagBits-1:0]   tag_t;
  typedef logic [WayWidth-1:0]  way_t;
  typedef logic [LaneWidth-1:0] lane_t;

  function automatic set_t set_of(input logic [31:0] permuted);
    return set_t'(permuted & 32'(Sets - 1));
  endfunction
  function automatic tag_t tag_of(input logic [31:0] permuted);
    return tag_t'(permuted >> SetBits);
  endfunction
  function automatic bank_t bank_of(input set_t set);
    return bank_t'(32'(set) & 32'(Banks - 1));
  endfunction
  function automatic row_t row_of(input set_t set);
    return row_t'(32'(set) >> BankBits);
  endfunction
  function automatic logic [31:0] slot_of(input logic [31:0] pinned, input set_t set,
                                          input way_t way);
    return pinned + (32'(set) << WayBits | 32'(way) & 32'(Ways - 1));
  endfunction

  // ------------------------------------------------------- control: slices, or a sweep, or DUMP

  typedef enum logic [1:0] {
    StClear,      // sweeping; entered by reset
    StClearDone,  // clear_ready_o
    StRun,        // slices pass
    StDump        // heads of the banks are collected
  } state_e;

  state_e state_d, state_q;
  row_t   clear_row_q;
  logic   dump_start, dump_done;

  localparam int unsigned CountWidth = $clog2(SlicesInFlight + 1);
  logic [CountWidth-1:0] slices_inside;
  logic [CountWidth-1:0] entries_inside_q;

  always_comb begin
    state_d    = state_q;
    dump_start = 1'b0;
    unique case (state_q)
      StClear: begin
        if (32'(clear_row_q) == Depth - 1) begin
          state_d = StClearDone;
        end
      end
      StClearDone: state_d = StRun;
      StRun: begin
        if (dump_valid_i && dump_ready_o) begin
          dump_start = 1'b1;
          state_d    = StDump;
        end else if (clear_valid_i && slices_inside == '0) begin
          state_d = StClear;
        end
      end
      StDump: begin
        if (dump_done) begin
          state_d = StRun;
        end
      end
      default: state_d = StClear;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StClear;
      clear_row_q <= '0;
    end else begin
      state_q     <= state_d;
      clear_row_q <= state_q == StClear ? clear_row_q + 1'b1 : '0;
    end
  end

  assign clear_ready_o = state_q == StClearDone;
  assign dump_ready_o  = idle_o;
  assign idle_o        = state_q == StRun && slices_inside == '0 && !res_valid_o &&
                         entries_inside_q == '0;

  // ------------------------------------------------------------------- requests, permutation

  typedef struct packed {
    logic [UserBits-1:0]               user;
    logic [Lanes-1:0]                  mask;
    logic [Lanes-1:0]                  pinned;
    logic [Lanes-1:0][31:0]            ids;
    logic [Lanes-1:0][CounterBits-1:0] counters;
  } request_t;

  typedef struct packed {
    kind_e                             kind;
    logic [Lanes-1:0]                  look;
    logic [Lanes-1:0][CounterBits-1:0] counters;
  } lookup_t;

  request_t req_in, req_out;
  lookup_t  lookup_in, lookup_permuted, lookup_next;
  logic     req_transfer;
  logic     req_out_valid;
  logic     merge_transfer;

  assign req_transfer = req_valid_i && req_ready_o;

  always_comb begin
    req_in.user     = req_user_i;
    req_in.mask     = req_mask_i;
    req_in.ids      = req_ids_i;
    req_in.counters = req_counters_i;
    for (int unsigned l = 0; l < Lanes; l++) begin
      req_in.pinned[l] = req_mask_i[l] && req_ids_i[l] < pinned_rows_i;
    end
    unique case (req_operation_i)
      OpLearn: lookup_in.kind = req_frequency_i ? KindCount : KindLearn;
      OpLoad:  lookup_in.kind = KindLoad;
      OpEvict: lookup_in.kind = KindEvict;
      default: lookup_in.kind = KindRead;
    endcase
    lookup_in.look     = req_mask_i & ~req_in.pinned;
    lookup_in.counters = req_counters_i;
  end

  // Its ready is the credit of the whole block: it has a place for each slice inside.
  hotline_stream_fifo #(
    .Width($bits(request_t)),
    .Depth(SlicesInFlight)
  ) u_requests (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (req_valid_i),
    .in_ready_o (req_ready_o),
    .in_data_i  (req_in),
    .out_valid_o(req_out_valid),
    .out_ready_i(merge_transfer),
    .out_data_o (req_out),
    .count_o    (slices_inside)
  );

  logic                   permuted_valid;
  logic [Lanes-1:0][31:0] permuted, permuted_next;

  hotline_feistel #(
    .Lanes   (Lanes),
    .UserBits($bits(lookup_t))
  ) u_feistel (
    .clk_i,
    .rst_ni,
    .valid_i(req_transfer),
    .data_i (req_ids_i),
    .user_i (lookup_in),
    .valid_o(permuted_valid),
    .data_o (permuted),
    .user_o (lookup_permuted)
  );

  logic                  permuted_ready;
  logic                  next_valid, next_take;
  logic [CountWidth-1:0] permuted_count;

  hotline_stream_fifo #(
    .Width($bits(lookup_t) + 32 * Lanes),
    .Depth(SlicesInFlight)
  ) u_permuted (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (permuted_valid),
    .in_ready_o (permuted_ready),
    .in_data_i  ({lookup_permuted, permuted}),
    .out_valid_o(next_valid),
    .out_ready_i(next_take),
    .out_data_o ({lookup_next, permuted_next}),
    .count_o    (permuted_count)
  );

  // ------------------------------------------------------------ arbitration: slices to groups

  logic                              slice_valid_q;
  kind_e                             slice_kind_q;
  logic [Lanes-1:0]                  slice_pending_q;   // lanes not sent yet
  set_t [Lanes-1:0]                  slice_set_q;
  tag_t [Lanes-1:0]                  slice_tag_q;
  logic [Lanes-1:0][CounterBits-1:0] slice_counter_q;
  logic [Lanes-1:0][Lanes-1:0]       slice_rival_q;     // [l][j]: lane j < l has l's bank
  lane_t [Lanes-1:0]                 slice_leader_q;    // whose result the lane takes

  // Reads of one id have one result: the lowest of its lanes looks it up for all.
  logic [Lanes-1:0]  follower;
  lane_t [Lanes-1:0] leader;

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      follower[l] = 1'b0;
      leader[l]   = lane_t'(l);
      for (int unsigned j = l; j > 0; j--) begin
        if (lookup_next.kind == KindRead && lookup_next.look[l] && lookup_next.look[j-1] &&
            permuted_next[j-1] == permuted_next[l]) begin
          follower[l] = 1'b1;
          leader[l]   = lane_t'(j - 1);
        end
      end
    end
  end

  logic [Lanes-1:0] grant, grant_port;
  logic             slice_last;                         // no lane is left after this group
  logic             banks_wait;                         // then slices and groups stand still

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      logic [Lanes-1:0] rivals;
      logic             several;
      rivals        = slice_rival_q[l] & slice_pending_q;
      several       = (rivals & (rivals - 1'b1)) != '0;
      grant_port[l] = rivals != '0;
      grant[l]      = slice_pending_q[l] &&
                      (slice_kind_q == KindRead ? !several : rivals == '0);
    end
  end

  assign slice_last = (slice_pending_q & ~grant) == '0;
  // A sweep or DUMP holds slices back here; they begin with no slice behind this point.
  assign next_take  = next_valid && state_q == StRun && !banks_wait &&
                      (!slice_valid_q || slice_last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slice_valid_q <= 1'b0;
    end else if (!banks_wait) begin
      slice_valid_q <= next_take || (slice_valid_q && !slice_last);
    end
  end

  // Not reset: qualified by slice_valid_q.
  always_ff @(posedge clk_i) begin
    if (next_take) begin
      slice_kind_q    <= lookup_next.kind;
      slice_pending_q <= lookup_next.look & ~follower;
      slice_leader_q  <= leader;
      slice_counter_q <= lookup_next.counters;
      for (int unsigned l = 0; l < Lanes; l++) begin
        slice_set_q[l] <= set_of(permuted_next[l]);
        slice_tag_q[l] <= tag_of(permuted_next[l]);
        for (int unsigned j = 0; j < Lanes; j++) begin
          slice_rival_q[l][j] <= j < l &&
              bank_of(set_of(permuted_next[j])) == bank_of(set_of(permuted_next[l]));
        end
      end
    end else if (!banks_wait) begin
      slice_pending_q <= slice_pending_q & ~grant;
    end
  end

  // --------------------------------------------------------------- the group: lanes to banks

  typedef struct packed {
    logic              valid;
    logic              last;    // of its slice
    logic [Lanes-1:0]  issue;   // lanes in this group
    logic [Lanes-1:0]  port;
    // Of all lanes of the slice.
    set_t [Lanes-1:0]  set;
    lane_t [Lanes-1:0] leader;
  } token_t;

  token_t                            group_q;
  kind_e                             group_kind_q;
  tag_t [Lanes-1:0]                  group_tag_q;
  logic [Lanes-1:0][CounterBits-1:0] group_counter_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      group_q.valid <= 1'b0;
    end else if (!banks_wait) begin
      group_q.valid <= slice_valid_q;
    end
  end

  // Not reset: qualified by group_q.valid.
  always_ff @(posedge clk_i) begin
    if (!banks_wait) begin
      group_q.last    <= slice_last;
      group_q.issue   <= grant;
      group_q.port    <= grant_port;
      group_q.set     <= slice_set_q;
      group_q.leader  <= slice_leader_q;
      group_kind_q    <= slice_kind_q;
      group_tag_q     <= slice_tag_q;
      group_counter_q <= slice_counter_q;
    end
  end

  logic [Banks-1:0]                             bank_wait;
  logic [Banks-1:0][1:0]                        bank_hit;
  logic [Banks-1:0][1:0][WayWidth-1:0]          bank_way;
  logic [Banks-1:0]                             bank_rejected;
  logic [Banks-1:0]                             head_valid, head_next, head_entry, head_last;
  logic [Banks-1:0][TagBits-1:0]                head_tag;
  logic [Banks-1:0][WayWidth-1:0]               head_way;
  logic [Banks-1:0][CounterBits-1:0]            head_counter;

  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    logic [1:0]             valid;
    row_t [1:0]             row;
    tag_t [1:0]             tag;
    logic [CounterBits-1:0] counter;

    // At most one lane selects a port, so that the selection is an OR.
    always_comb begin
      valid   = '0;
      row     = '0;
      tag     = '0;
      counter = '0;
      for (int unsigned l = 0; l < Lanes; l++) begin
        for (int unsigned p = 0; p < 2; p++) begin
          if (group_q.valid && group_q.issue[l] && group_q.port[l] == p[0] &&
              bank_of(group_q.set[l]) == bank_t'(b)) begin
            valid[p] = 1'b1;
            row[p]  |= row_of(group_q.set[l]);
            tag[p]  |= group_tag_q[l];
          end
        end
        if (group_q.issue[l] && bank_of(group_q.set[l]) == bank_t'(b) && !group_q.port[l]) begin
          counter |= group_counter_q[l];
        end
      end
    end

    hotline_eal_bank #(
      .Depth  (Depth),
      .Ways   (Ways),
      .TagBits(TagBits)
    ) u_bank (
      .clk_i,
      .rst_ni,
      .lkp_move_i    (!banks_wait),
      .lkp_kind_i    (group_kind_q),
      .lkp_valid_i   (valid),
      .lkp_row_i     (row),
      .lkp_tag_i     (tag),
      .lkp_counter_i (counter),
      .lkp_wait_o    (bank_wait[b]),
      .res_hit_o     (bank_hit[b]),
      .res_way_o     (bank_way[b]),
      .res_rejected_o(bank_rejected[b]),
      .clear_i       (state_q == StClear),
      .clear_row_i   (clear_row_q),
      .dump_start_i  (dump_start),
      .dump_valid_o  (head_valid[b]),
      .dump_next_i   (head_next[b]),
      .dump_entry_o  (head_entry[b]),
      .dump_last_o   (head_last[b]),
      .dump_tag_o    (head_tag[b]),
      .dump_way_o    (head_way[b]),
      .dump_counter_o(head_counter[b])
    );
  end

  assign banks_wait = |bank_wait;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stat_stall_bank_o <= 1'b0;
    end else begin
      stat_stall_bank_o <= banks_wait || (slice_valid_q && !slice_last);
    end
  end

  // ----------------------------------------------------------------- results: groups to slices

  // Element s is the group in stage s of the banks. From stage 2 on nothing waits. Element 5 meets
  // the results.
  token_t [5:0] token_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned s = 0; s <= 5; s++) begin
        token_q[s].valid <= 1'b0;
      end
    end else begin
      if (!banks_wait) begin
        token_q[0].valid <= group_q.valid;
        token_q[1].valid <= token_q[0].valid;
      end
      token_q[2].valid <= token_q[1].valid && !banks_wait;
      for (int unsigned s = 3; s <= 5; s++) begin
        token_q[s].valid <= token_q[s-1].valid;
      end
    end
  end

  // Not reset: qualified by the valid bits.
  always_ff @(posedge clk_i) begin
    if (!banks_wait) begin
      token_q[0].last   <= group_q.last;
      token_q[0].issue  <= group_q.issue;
      token_q[0].port   <= group_q.port;
      token_q[0].set    <= group_q.set;
      token_q[0].leader <= group_q.leader;
    end
    for (int unsigned s = 1; s <= 5; s++) begin
      if (s > 1 || !banks_wait) begin
        token_q[s].last   <= token_q[s-1].last;
        token_q[s].issue  <= token_q[s-1].issue;
        token_q[s].port   <= token_q[s-1].port;
        token_q[s].set    <= token_q[s-1].set;
        token_q[s].leader <= token_q[s-1].leader;
      end
    end
  end

  typedef struct packed {
    logic hit;
    logic rejected;
    way_t way;
    set_t set;
  } result_t;

  logic                merged_done_q;    // merged_q is a whole slice
  result_t [Lanes-1:0] merged_q, merged;
  lane_t [Lanes-1:0]   merged_leader_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      merged_done_q <= 1'b0;
    end else begin
      merged_done_q <= token_q[5].valid && token_q[5].last;
    end
  end

  logic merged_fresh_q;  // the next group is the first of its slice

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      merged_fresh_q <= 1'b1;
    end else if (token_q[5].valid) begin
      merged_fresh_q <= token_q[5].last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (token_q[5].valid) begin
      for (int unsigned l = 0; l < Lanes; l++) begin
        merged_q[l].set    <= token_q[5].set[l];
        merged_leader_q[l] <= token_q[5].leader[l];
        if (token_q[5].issue[l]) begin
          merged_q[l].hit      <= bank_hit[bank_of(token_q[5].set[l])][token_q[5].port[l]];
          merged_q[l].way      <= bank_way[bank_of(token_q[5].set[l])][token_q[5].port[l]];
          merged_q[l].rejected <= bank_rejected[bank_of(token_q[5].set[l])] &&
                                  !token_q[5].port[l];
        end else if (merged_fresh_q) begin
          merged_q[l].hit      <= 1'b0;
          merged_q[l].rejected <= 1'b0;
        end
      end
    end
  end

  always_comb begin
    for (int unsigned l = 0; l < Lanes; l++) begin
      merged[l] = merged_q[merged_leader_q[l]];
    end
  end

  logic                  merged_ready;
  logic                  merge_valid;
  result_t [Lanes-1:0]   merge;
  logic [CountWidth-1:0] merged_count;

  hotline_stream_fifo #(
    .Width($bits(result_t) * Lanes),
    .Depth(SlicesInFlight)
  ) u_merged (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (merged_done_q),
    .in_ready_o (merged_ready),
    .in_data_i  (merged),
    .out_valid_o(merge_valid),
    .out_ready_i(merge_transfer),
    .out_data_o (merge),
    .count_o    (merged_count)
  );

  typedef struct packed {
    request_t               request;
    logic [Lanes-1:0]       hit;
    logic [Lanes-1:0]       rejected;
    logic [Lanes-1:0][31:0] slots;
  } response_t;

  response_t res_in, res_out;
  logic      res_in_ready;

  assign merge_transfer = merge_valid && res_in_ready;

  always_comb begin
    res_in.request = req_out;
    for (int unsigned l = 0; l < Lanes; l++) begin
      res_in.hit[l]      = merge[l].hit;
      res_in.rejected[l] = merge[l].rejected;
      res_in.slots[l]    = '0;
      if (req_out.pinned[l]) begin
        res_in.slots[l] = req_out.ids[l];
      end else if (merge[l].hit) begin
        res_in.slots[l] = slot_of(pinned_rows_i, merge[l].set, merge[l].way);
      end
    end
  end

  hotline_spill_register #(
    .Width($bits(response_t))
  ) u_response (
    .clk_i,
    .rst_ni,
    .in_valid_i (merge_valid),
    .in_ready_o (res_in_ready),
    .in_data_i  (res_in),
    .out_valid_o(res_valid_o),
    .out_ready_i(res_ready_i),
    .out_data_o (res_out)
  );

  assign res_user_o     = res_out.request.user;
  assign res_mask_o     = res_out.request.mask;
  assign res_ids_o      = res_out.request.ids;
  assign res_counters_o = res_out.request.counters;
  assign res_pinned_o   = res_out.request.pinned;
  assign res_hit_o      = res_out.hit;
  assign res_rejected_o = res_out.rejected;
  assign res_slots_o    = res_out.slots;

  // ------------------------------------------------------------------------------------- DUMP

  typedef struct packed {
    set_t                   set;
    way_t                   way;
    logic [CounterBits-1:0] counter;
    logic                   last;
    logic                   empty;   // no entry: only the end of the DUMP
  } head_t;

  typedef struct packed {
    logic [31:0]            row;
    logic [31:0]            slot;
    logic [CounterBits-1:0] counter;
    logic                   last;
    logic                   empty;
  } entry_t;

  set_t  dump_set_q;         // whose heads are collected
  bank_t dump_bank;
  logic  dump_take, dump_final, dump_emit;
  logic  ent_transfer;

  assign dump_bank  = bank_of(dump_set_q);
  assign dump_take  = state_q == StDump && head_valid[dump_bank] &&
                      entries_inside_q != CountWidth'(SlicesInFlight);
  assign dump_final = head_last[dump_bank] && 32'(dump_set_q) == Sets - 1;
  assign dump_emit  = dump_take && (head_entry[dump_bank] || dump_final);
  assign dump_done  = dump_take && dump_final;

  always_comb begin
    head_next            = '0;
    head_next[dump_bank] = dump_take;
  end

  assign ent_transfer = ent_valid_o && ent_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      entries_inside_q <= '0;
    end else begin
      entries_inside_q <= entries_inside_q + CountWidth'(dump_emit) - CountWidth'(ent_transfer);
    end
  end

  always_ff @(posedge clk_i) begin
    if (dump_start) begin
      dump_set_q <= '0;
    end else if (dump_take && head_last[dump_bank]) begin
      dump_set_q <= dump_set_q + 1'b1;
    end
  end

  logic        selected_valid_q;
  head_t       selected_q;
  tag_t        selected_tag_q;
  logic [31:0] selected_permuted;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      selected_valid_q <= 1'b0;
    end else begin
      selected_valid_q <= dump_emit;
    end
  end

  always_ff @(posedge clk_i) begin
    selected_q.set     <= dump_set_q;
    selected_q.way     <= head_way[dump_bank];
    selected_q.counter <= head_counter[dump_bank];
    selected_q.last    <= dump_final;
    selected_q.empty   <= !head_entry[dump_bank];
    selected_tag_q     <= head_tag[dump_bank];
  end

  assign selected_permuted = 32'(selected_tag_q) << SetBits | 32'(selected_q.set) & 32'(Sets - 1);

  logic        row_valid;
  logic [31:0] row_id;
  head_t       row_head;
  entry_t      ent_in, ent_out;
  logic        ent_in_ready;
  logic [CountWidth-1:0] ent_count;

  hotline_feistel #(
    .Lanes   (1),
    .UserBits($bits(head_t)),
    .Inverse (1'b1)
  ) u_inverse (
    .clk_i,
    .rst_ni,
    .valid_i(selected_valid_q),
    .data_i (selected_permuted),
    .user_i (selected_q),
    .valid_o(row_valid),
    .data_o (row_id),
    .user_o (row_head)
  );

  assign ent_in.row     = row_id;
  assign ent_in.slot    = slot_of(pinned_rows_i, row_head.set, row_head.way);
  assign ent_in.counter = row_head.counter;
  assign ent_in.last    = row_head.last;
  assign ent_in.empty   = row_head.empty;

  hotline_stream_fifo #(
    .Width($bits(entry_t)),
    .Depth(SlicesInFlight)
  ) u_entries (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (row_valid),
    .in_ready_o (ent_in_ready),
    .in_data_i  (ent_in),
    .out_valid_o(ent_valid_o),
    .out_ready_i(ent_ready_i),
    .out_data_o (ent_out),
    .count_o    (ent_count)
  );

  assign ent_row_o     = ent_out.row;
  assign ent_slot_o    = ent_out.slot;
  assign ent_counter_o = ent_out.counter;
  assign ent_last_o    = ent_out.last;
  assign ent_void_o    = ent_out.empty;

`ifndef SYNTHESIS
  // Before the first reset registers are random: nothing is asserted.
  logic reset_seen_q;
  initial reset_seen_q = 1'b0;
  always @(posedge clk_i) begin
    reset_seen_q <= reset_seen_q || !rst_ni;
  end

  // The credit holds: what arrives at a FIFO finds room.
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      (permuted_valid |-> permuted_ready) and (merged_done_q |-> merged_ready) and
      (row_valid |-> ent_in_ready));
  a_counts: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      permuted_count <= slices_inside && merged_count <= slices_inside &&
      ent_count <= entries_inside_q);
  a_merge_has_request: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      merge_valid |-> req_out_valid);
  a_alone: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      state_q != StRun |-> !slice_valid_q && !group_q.valid && !token_q[0].valid &&
                           !token_q[1].valid);
  a_hit_or_pinned: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      res_valid_o |-> (res_hit_o & res_pinned_o) == '0 &&
                      ((res_hit_o | res_pinned_o | res_rejected_o) & ~res_mask_o) == '0);
  a_req_stable: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      req_valid_i && !req_ready_o |=>
      req_valid_i && $stable({req_operation_i, req_frequency_i, req_mask_i, req_ids_i,
                              req_counters_i, req_user_i}));
  a_clear_held: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      clear_valid_i && !clear_ready_o |=> clear_valid_i);
  a_dump_held: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      dump_valid_i && !dump_ready_o |=> dump_valid_i);
`endif

endmodule
