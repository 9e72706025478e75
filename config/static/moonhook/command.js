// The search dialog: Ctrl-K opens it, also from a field; closing it restores the focus.

// Unfold's searchCommand() in app.js does the rest.
function moonhookCommand() {
    let opener = null;
    return {
        ...searchCommand(),
        handleShortcut(event) {
            if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            if (!this.openCommandResults) this.open();
        },
        open() {
            opener = document.activeElement;
            this.handleOpen();
            // Unfold shows and focuses the field later: letters typed until then would be lost.
            this.$root.style.removeProperty("display");
            this.$refs.searchInputCommand.focus();
        },
        close() {
            this.$refs.searchInputCommand.value = "";
            this.handleEscape();
            opener?.focus();
        },
        closeFromOutside() {
            if (this.openCommandResults) this.close();
        },
        // Enter opens the marked result, or the first.
        openResult(isInNewTab) {
            if (this.totalItems === 0) return;
            this.currentIndex ||= 1;
            this.selectItem(false, isInNewTab);
        },
    };
}
