// What waits to be sent, in order, kept by the browser: it outlasts the connection, the page and the browser.

export class Outbox {
    constructor(name) {
        this.name = name;
        this.memory = "[]";
        this.lasts = true;
        try {
            localStorage.setItem(name, localStorage.getItem(name) ?? "[]");
        } catch {
            this.lasts = false; // no storage, as in a private window: it lives as long as the page
        }
    }

    // Read again each time: another tab may have added to it.
    all() {
        return JSON.parse((this.lasts && localStorage.getItem(this.name)) || this.memory);
    }

    add(entry) {
        this.write([...this.all(), { key: `${Date.now()}-${Math.random().toString(36).slice(2)}`, ...entry }]);
    }

    drop(keys) {
        this.write(this.all().filter(({ key }) => !keys.includes(key)));
    }

    // The last that was said of each item.
    last() {
        return new Map(this.all().map(({ item, kind }) => [item, kind]));
    }

    write(entries) {
        this.memory = JSON.stringify(entries);
        try {
            localStorage.setItem(this.name, this.memory);
        } catch {
            this.lasts = false;
        }
    }
}
