// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// One bank of the EAL: whole sets in a true dual-port RAM, with the tag compare and the policy.
///
/// A word of the RAM is a set: `Ways` x {valid, tag, counter}. A *group* is what the bank is asked
/// at once: up to two reads (ports 0 and 1), or one update (port 0; port 1 of the RAM writes back).
///
///   stage    0         1       2          3         4                5
///            request   fires   RAM read   compare   decide, update   result out; RAM write
///
/// A lookup leaves stage 1 ("fires") in the first cycle that is safe: an update waits for updates
/// of the same set in stages 2 to 5, a read for every update in them (port 1 belongs to those).
/// `lkp_wait_o` says that a lookup waits; no group moves meanwhile, in any bank. Firing order is
/// issue order, so updates of one set happen in that order and each sees the one before. The sets
/// are compared in stage 0, so that waiting in stage 1 is a matter of a few flip-flops.
///
///   lkp_move_i   | A | B | C | 1 | . | . | . | . | 1 |    A, B: updates of one set enter stage 0
///   lkp_wait_o               |   | 1 | 1 | 1 | 1 |
///   res_*_o                              | A             | B
///
/// Results stay until the next result of their port: a group whose lookups fire at different times
/// (in different banks) can be collected when the last one is done.
///
/// The sweep (`clear_*`) and DUMP (`dump_*`) are used only while no lookup is inside. DUMP: after
/// `dump_start_i` the heads of the bank appear one by one, each an entry, or a set without any
/// (`entry` low); `dump_last_o` marks the last head of a set. `dump_next_i` takes the head.
///
/// Throughput  2 reads or 1 update per cycle; updates of one set every 5 cycles. DUMP: one head per
///             cycle within a set; the first head of the next set comes 4 cycles after the last.
/// Latency     6 cycles from `lkp_move_i` to `res_*`, without waiting; 4 from firing.
/// Stalls      See `lkp_wait_o`.
/// Errors      None.
/// Reset       Drops everything inside; the RAM keeps its contents: sweep it.
module hotline_eal_bank import hotline_pkg::*, hotline_eal_pkg::*; #(
  /// Sets in this bank.
  parameter int unsigned Depth = 8,
  /// Ways of a set, at most 16.
  parameter int unsigned Ways = 16,
  /// Bits of a tag.
  parameter int unsigned TagBits = 28,
  localparam int unsigned RowWidth = Depth > 1 ? $clog2(Depth) : 1,
  localparam int unsigned WayWidth = Ways > 1 ? $clog2(Ways) : 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  /// Groups move on: one enters stage 0. Only while `lkp_wait_o` is low, here and in other banks.
  input  logic                     lkp_move_i,
  input  kind_e                    lkp_kind_i,
  /// Which ports have a lookup; port 1 only for reads.
  input  logic [1:0]               lkp_valid_i,
  input  logic [1:0][RowWidth-1:0] lkp_row_i,
  input  logic [1:0][TagBits-1:0]  lkp_tag_i,
  /// Counter of an entry that LOAD inserts (port 0).
  input  logic [CounterBits-1:0]   lkp_counter_i,
  output logic                     lkp_wait_o,

  /// Found before the update.
  output logic [1:0]               res_hit_o,
  output logic [1:0][WayWidth-1:0] res_way_o,
  /// LOAD found neither the tag nor a free way (port 0).
  output logic                     res_rejected_o,

  input  logic                     clear_i,
  input  logic [RowWidth-1:0]      clear_row_i,

  input  logic                     dump_start_i,
  output logic                     dump_valid_o,
  input  logic                     dump_next_i,
  output logic                     dump_entry_o,
  output logic                     dump_last_o,
  output logic [TagBits-1:0]       dump_tag_o,
  output logic [WayWidth-1:0]      dump_way_o,
  output logic [CounterBits-1:0]   dump_counter_o
);

  typedef struct packed {
    logic                   valid;
    logic [TagBits-1:0]     tag;
    logic [CounterBits-1:0] counter;
  } entry_t;

  typedef entry_t [Ways-1:0] set_t;
  typedef logic [Ways-1:0]   ways_t;

  /// The lowest one of a vector, alone.
  function automatic ways_t lowest(input ways_t bits);
    return bits & (~bits + 1'b1);
  endfunction

  /// Number of the only one of a vector.
  function automatic logic [WayWidth-1:0] encode(input ways_t onehot);
    logic [WayWidth-1:0] number;
    number = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (onehot[w]) begin
        number |= WayWidth'(w);
      end
    end
    return number;
  endfunction

  // ---------------------------------------------------------------------- stage 0: the request

  kind_e                    kind0_q, kind1_q;
  logic [1:0]               look0_q, look1_q;
  logic [1:0][RowWidth-1:0] row0_q, row1_q;
  logic [1:0][TagBits-1:0]  tag0_q, tag1_q;
  logic [CounterBits-1:0]   counter0_q, counter1_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      look0_q <= '0;
    end else if (lkp_move_i) begin
      look0_q <= lkp_valid_i;
    end
  end

  // Not reset: qualified by look0_q.
  always_ff @(posedge clk_i) begin
    if (lkp_move_i) begin
      kind0_q    <= lkp_kind_i;
      row0_q     <= lkp_row_i;
      tag0_q     <= lkp_tag_i;
      counter0_q <= lkp_counter_i;
    end
  end

  // Updates in stages 2 to 5, and those of them that the lookups in stage 1 wait for. An update
  // that is now in stage s will be in stage s + 1 when the lookups in stage 0 are in stage 1.
  logic [5:2]               update_q;
  logic [5:2][RowWidth-1:0] row_q;
  logic [5:2]               rival_q;
  logic [5:2]               rival0;
  logic [1:0]               fire;
  logic                     fire_update;

  always_comb begin
    rival0[2] = fire_update && (kind0_q == KindRead || row1_q[0] == row0_q[0]);
    for (int unsigned s = 3; s <= 5; s++) begin
      rival0[s] = update_q[s-1] && (kind0_q == KindRead || row_q[s-1] == row0_q[0]);
    end
  end

  // ------------------------------------------------------------------------- stage 1: it fires

  assign lkp_wait_o  = |look1_q && |rival_q;
  assign fire        = rival_q == '0 ? look1_q : '0;
  assign fire_update = fire[0] && kind1_q != KindRead;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      look1_q  <= '0;
      update_q <= '0;
      rival_q  <= '0;
    end else begin
      look1_q  <= lkp_move_i ? look0_q : look1_q & ~fire;
      update_q <= {update_q[4:2], fire_update};
      rival_q  <= lkp_move_i ? rival0 : {rival_q[4:2], 1'b0};
    end
  end

  // Not reset: qualified by look1_q and update_q.
  always_ff @(posedge clk_i) begin
    if (lkp_move_i) begin
      kind1_q    <= kind0_q;
      row1_q     <= row0_q;
      tag1_q     <= tag0_q;
      counter1_q <= counter0_q;
    end
    row_q <= {row_q[4:2], row1_q[0]};
  end

  // ------------------------------------------------------------------------- stage 2: the RAM

  logic                dump_read;
  logic [RowWidth-1:0] dump_row_q;
  set_t                word5_q;
  set_t [1:0]          rdata;

  hotline_ram_2rw #(
    .Width($bits(set_t)),
    .Depth(Depth)
  ) u_ram (
    .clk_i,
    .a_en_i   (fire[0] || dump_read),
    .a_we_i   (1'b0),
    .a_addr_i (dump_read ? dump_row_q : row1_q[0]),
    .a_wdata_i('0),
    .a_rdata_o(rdata[0]),
    .b_en_i   (fire[1] || update_q[5] || clear_i),
    .b_we_i   (update_q[5] || clear_i),
    .b_addr_i (clear_i ? clear_row_i : update_q[5] ? row_q[5] : row1_q[1]),
    .b_wdata_i(clear_i ? '0 : word5_q),
    .b_rdata_o(rdata[1])
  );

  // Lookups in stages 2 to 4, with what they need there.
  ways_t                         from3_q;   // ways from the preferred one on
  logic  [4:2][1:0]              look_q;
  kind_e                         kind2_q, kind3_q, kind4_q;
  logic  [3:2][1:0][TagBits-1:0] tag_q;
  logic  [TagBits-1:0]           tag4_q;
  logic  [4:2][CounterBits-1:0]  counter_q;
  set_t  [1:0]                   word3_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      look_q <= '0;
    end else begin
      look_q <= {look_q[3:2], fire};
    end
  end

  // Not reset: qualified by look_q. A plain register behind the RAM becomes its output register.
  always_ff @(posedge clk_i) begin
    kind2_q   <= kind1_q;
    // KindCount begins at the way that the tag prefers; the others at way 0.
    from3_q   <= kind2_q == KindCount ? {Ways{1'b1}} << WayWidth'(tag_q[2][0] & TagBits'(Ways - 1))
                                      : {Ways{1'b1}};
    kind3_q   <= kind2_q;
    kind4_q   <= kind3_q;
    tag_q     <= {tag_q[2], tag1_q};
    tag4_q    <= tag_q[3][0];
    counter_q <= {counter_q[3:2], counter1_q};
    word3_q   <= rdata;
  end

  // --------------------------------------------------------------------- stage 3: the compare

  /// Ways that hold a tag.
  function automatic ways_t matching(input set_t word, input logic [TagBits-1:0] tag);
    ways_t found;
    for (int unsigned w = 0; w < Ways; w++) begin
      found[w] = word[w].valid && word[w].tag == tag;
    end
    return found;
  endfunction

  /// Ways without an entry.
  function automatic ways_t vacant(input set_t word);
    ways_t found;
    for (int unsigned w = 0; w < Ways; w++) begin
      found[w] = !word[w].valid;
    end
    return found;
  endfunction

  /// Ways whose counter is at least `counter`.
  function automatic ways_t aged(input set_t word, input logic [CounterBits-1:0] counter);
    ways_t found;
    for (int unsigned w = 0; w < Ways; w++) begin
      found[w] = word[w].counter >= counter;
    end
    return found;
  endfunction

  /// The first of `found` from the preferred way on, alone; beyond the last way it goes on at way 0.
  function automatic ways_t first_of(input ways_t found, input ways_t from);
    return lowest((found & from) != '0 ? found & from : found);
  endfunction

  logic        dump_capture;
  ways_t [1:0] match4_q;
  ways_t       free4_q;       // lowest free way, alone
  ways_t       victim4_q;     // first way with the greatest counter, alone
  logic [1:0]  age4_q;        // what the greatest counter lacks to 3
  set_t        word4_q;

  // Most banks have no lookup in most cycles: the enables save power, and time in simulation.
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < 2; p++) begin
      if (look_q[3][p]) begin
        match4_q[p] <= matching(word3_q[p], tag_q[3][p]);
      end
    end
    if (look_q[3][0] && kind3_q != KindRead) begin
      free4_q <= lowest(vacant(word3_q[0]));
      if (|aged(word3_q[0], CounterVictim)) begin
        victim4_q <= first_of(aged(word3_q[0], CounterVictim), from3_q);
        age4_q    <= 2'd0;
      end else if (|aged(word3_q[0], 2'd2)) begin
        victim4_q <= first_of(aged(word3_q[0], 2'd2), from3_q);
        age4_q    <= 2'd1;
      end else if (|aged(word3_q[0], 2'd1)) begin
        victim4_q <= first_of(aged(word3_q[0], 2'd1), from3_q);
        age4_q    <= 2'd2;
      end else begin
        victim4_q <= lowest(from3_q);
        age4_q    <= 2'd3;
      end
    end
    if (look_q[3][0] || dump_capture) begin
      word4_q <= word3_q[0];
    end
  end

  // -------------------------------------------------------------------- stage 4: the decision

  logic full4, hit4;

  assign full4 = free4_q == '0;
  assign hit4  = |match4_q[0];

  /// The set after the update in stage 4.
  function automatic set_t updated();
    ways_t insert;
    set_t  word;
    insert = '0;
    if (!hit4) begin
      unique case (kind4_q)
        KindLearn: insert = full4 ? victim4_q : free4_q;
        KindCount: insert = !full4 ? free4_q : age4_q == 2'd0 ? victim4_q : '0;
        KindLoad:  insert = free4_q;
        default:   insert = '0;
      endcase
    end
    for (int unsigned w = 0; w < Ways; w++) begin
      word[w] = word4_q[w];
      if (insert[w]) begin
        word[w].valid   = 1'b1;
        word[w].tag     = tag4_q;
        unique case (kind4_q)
          KindLearn: word[w].counter = CounterInsert;
          KindCount: word[w].counter = CounterVictim;
          default:   word[w].counter = counter_q[4];
        endcase
      end else if (kind4_q == KindLearn) begin
        if (match4_q[0][w]) begin
          word[w].counter = CounterHit;
        end else if (!hit4 && full4) begin
          word[w].counter = word4_q[w].counter + age4_q;
        end
      end else if (kind4_q == KindCount) begin
        if (match4_q[0][w]) begin
          word[w].counter = word4_q[w].counter - 2'(word4_q[w].counter != CounterHit);
        end else if (!hit4 && full4 && victim4_q[w]) begin
          word[w].counter = word4_q[w].counter + 1'b1;
        end
      end else if (kind4_q == KindEvict && match4_q[0][w]) begin
        word[w].valid = 1'b0;
      end
    end
    return word;
  endfunction

  // ------------------------------------------------------- stage 5: the result, the write back

  always_ff @(posedge clk_i) begin
    if (update_q[4]) begin
      word5_q <= updated();
    end
    for (int unsigned p = 0; p < 2; p++) begin
      if (look_q[4][p]) begin
        res_hit_o[p] <= |match4_q[p];
        res_way_o[p] <= encode(match4_q[p]);
      end
    end
    if (look_q[4][0]) begin
      res_rejected_o <= kind4_q == KindLoad && !hit4 && full4;
    end
  end

  // ------------------------------------------------------------------------------------- DUMP

  logic       dump_want_q;     // the next set is to be read
  logic [2:1] dump_read_q;     // ... and where the read is
  logic       dump_loaded_q;   // word4_q holds a set with heads left
  ways_t      dump_pending_q;  // its valid entries that were no head yet
  logic       dump_head_q;
  logic       dump_advance;
  ways_t      dump_first, dump_rest;
  entry_t     dump_entry_q;

  assign dump_read    = dump_want_q;
  assign dump_capture = dump_read_q[2];
  assign dump_advance = dump_loaded_q && (!dump_head_q || dump_next_i);
  assign dump_first   = lowest(dump_pending_q);
  assign dump_rest    = dump_pending_q & ~dump_first;
  assign dump_valid_o = dump_head_q;

  assign dump_entry_o   = dump_entry_q.valid;
  assign dump_tag_o     = dump_entry_q.tag;
  assign dump_counter_o = dump_entry_q.counter;

  /// The entry of a one-hot way.
  function automatic entry_t select(input set_t word, input ways_t way);
    entry_t found;
    found = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (way[w]) begin
        found |= word[w];
      end
    end
    return found;
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      dump_want_q   <= 1'b0;
      dump_read_q   <= '0;
      dump_loaded_q <= 1'b0;
      dump_head_q   <= 1'b0;
    end else begin
      dump_read_q <= {dump_read_q[1], dump_read};
      dump_head_q <= dump_advance || (dump_head_q && !dump_next_i);
      dump_want_q <= dump_start_i ||
          (dump_advance && dump_rest == '0 && 32'(dump_row_q) != Depth - 1);
      if (dump_capture) begin
        dump_loaded_q <= 1'b1;
      end else if (dump_advance && dump_rest == '0) begin
        dump_loaded_q <= 1'b0;
      end
    end
  end

  // Not reset: set by dump_start_i, or qualified by the bits above.
  always_ff @(posedge clk_i) begin
    if (dump_start_i) begin
      dump_row_q <= '0;
    end else if (dump_advance && dump_rest == '0) begin
      dump_row_q <= dump_row_q + 1'b1;
    end
    if (dump_capture) begin
      dump_pending_q <= ~vacant(word3_q[0]);
    end else if (dump_advance) begin
      dump_pending_q <= dump_rest;
    end
    if (dump_advance) begin
      dump_entry_q   <= select(word4_q, dump_first);
      dump_last_o    <= dump_rest == '0;
      dump_way_o     <= encode(dump_first);
    end
  end

`ifndef SYNTHESIS
  // Before the first reset registers are random: nothing is asserted.
  logic reset_seen_q;
  initial reset_seen_q = 1'b0;
  always @(posedge clk_i) begin
    reset_seen_q <= reset_seen_q || !rst_ni;
  end

  // The RAM's second port has one user at a time.
  a_port_one_user: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      $onehot0({fire[1], update_q[5], clear_i}));
  // An id is in its set once at most; also catches a read of a set that was never swept.
  a_match_once: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      (look_q[4][0] |-> $onehot0(match4_q[0])) and (look_q[4][1] |-> $onehot0(match4_q[1])));
  a_move_free: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      lkp_move_i |-> !lkp_wait_o);
  a_update_one: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      lkp_move_i && lkp_kind_i != KindRead |-> !lkp_valid_i[1]);
  a_dump_alone: assert property (@(posedge clk_i) disable iff (!rst_ni || !reset_seen_q)
      dump_start_i || dump_read || clear_i |->
      look0_q == '0 && look1_q == '0 && look_q == '0 && update_q == '0);
`endif

endmodule
