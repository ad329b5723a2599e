// The editor of a script: CodeMirror in a shadow root, where its styles need no change of the pages' policy of contents.
// `scripts/editor` bundles it into warcmill/web/static/editor.js. Its colours are the variables of warcmill.css.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--refused)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--done)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--running)" },
  { tag: [tags.comment], color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.definition(tags.variableName), tags.className, tags.meta], color: "var(--link)" },
  { tag: tags.invalid, color: "var(--failed)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--sheet)", color: "var(--ink)", fontSize: "var(--small)" },
  "&.cm-focused": { outline: "3px solid var(--link)", outlineOffset: "-3px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", minHeight: "100%" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--shade)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--link) 8%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--link) 30%, transparent)",
  },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--found)" },
  ".cm-specialChar": { color: "var(--failed)" },
  ".cm-panels": { backgroundColor: "var(--shade)", color: "var(--ink)" },
});

// Put an editor with a text into an element; `changed` is called after each change.
export function edit(host, text, label, changed) {
  const root = host.attachShadow({ mode: "open" });
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        highlightSpecialChars(),
        highlightSelectionMatches(),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        bracketMatching(),
        search({ top: true }),
        python(),
        syntaxHighlighting(colours),
        look,
        keymap.of([indentWithTab, ...defaultKeymap, ...searchKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    insert(piece) {
      view.dispatch(view.state.replaceSelection(piece), { scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
  };
}
